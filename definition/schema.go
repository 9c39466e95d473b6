package definition

import _ "embed"

// Schema is the JSON Schema (draft 2020-12) of definitions, for editors. It is generated from the
// types of definitions, their comments and the words that the compiler accepts. A test fails if it
// is out of date.
//
//go:generate go test -count=1 -run TestTheSchemaIsUpToDate . -args -update
//go:embed schema.json
var Schema []byte
