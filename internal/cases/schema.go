package cases

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of case files, for editors. A test compares it with the
// reader.
//
//go:embed schema.json
var Schema []byte
