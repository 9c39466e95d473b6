package define

import "encoding/json"

// Read reads a text that is a definition in another form, in JSON, if it begins with {, or in YAML:
// it gives the JSON of it, keys in the order written, and a Reporter which knows where in the text
// each place is. The JSON is nil if the text means nothing; then the Reporter has told why.
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
