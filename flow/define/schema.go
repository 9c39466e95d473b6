package define

import _ "embed"

// Schema describes definitions as a JSON Schema (draft 2020-12), for editors. It is made of the
// types they are read into, their comments and the words that the compiler takes; a test says when
// it is out of date.
//
//go:generate go test -count=1 -run TestTheSchemaIsUpToDate . -args -update
//go:embed schema.json
var Schema []byte
