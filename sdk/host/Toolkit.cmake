# Out: OPGEN_SDK_INCLUDES, the folders of the toolkit's headers
set(OPGEN_SDK_INCLUDES ${CMAKE_SOURCE_DIR}/sdk/include)
