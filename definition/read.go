package definition

import "encoding/json"

// Read reads a text that contains a definition in another form, in JSON, if it begins with {, or in
// YAML. It returns its JSON with keys in the written order, and a Reporter that knows the position
// of each place. The JSON is nil if the text is invalid; then the Reporter contains the reason.
func Read(text []byte) (json.RawMessage, *Reporter) {
	r := &Reporter{}
	r.root = readerFor(text)(trimBOM(text), r)
	if r.root == nil {
		return nil, r
	}
	left := MaxNodes
	decoder{r, &left, false}.refuseDuplicatesInside(r.root, nil)
	return appendJSON(nil, r.root), r
}
