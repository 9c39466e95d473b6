package definition

import "encoding/json"

// Read reads a text that contains a definition in another form: JSON, if the text begins with {,
// otherwise YAML. It returns JSON with keys in the written order, and a Reporter that knows the
// position of each place. If the text is invalid, the JSON is nil and the Reporter contains the
// reason.
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
