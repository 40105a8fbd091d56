"""Registrations -> text of every generated file."""
