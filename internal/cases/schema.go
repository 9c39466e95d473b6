package cases

import _ "embed"

// Schema describes files of cases as a JSON Schema (draft 2020-12), for editors. A test compares it
// with what the reader knows.
//
//go:embed schema.json
var Schema []byte
