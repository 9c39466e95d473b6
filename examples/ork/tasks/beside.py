value = "from the file beside"
