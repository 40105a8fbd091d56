"""`opgen explain`: everything that decides how one operator gets its kernel.

`find` knows which operators a word can mean, `facts` collects, `text` lays out for people, `command` is the verb.
"""
