package definition

import (
	"bytes"
	"math"
)

// Parse reads a definition in JSON, if the text begins with {, or in YAML.
//
// The error is of type Problems and contains all problems. Syntax errors are repaired in the way
// that was probably intended, so that other problems are found too. The definition is nil if that
// is impossible; otherwise it contains what could be read. Compiling it reports the problems of the
// text together with its own, and warnings.
func Parse(text []byte) (*Definition, error) { return Reading{}.Parse(text) }

// ParsePublished is like Parse, but for a published text, which may have any number of nodes.
func ParsePublished(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, readerFor(text), math.MaxInt)
}

// readerFor returns the function that reads a text.
func readerFor(text []byte) func([]byte, *Reporter) textValue {
	if bytes.HasPrefix(bytes.TrimLeft(trimBOM(text), " \t\r\n"), []byte{'{'}) {
		return mendJSON
	}
	return readYAML
}

// ParseJSON is Parse for a JSON text.
func ParseJSON(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, mendJSON, MaxNodes)
}

// ParseYAML is Parse for a YAML text.
func ParseYAML(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, readYAML, MaxNodes)
}

// Reading holds the options for definitions from a certain route.
type Reading struct {
	Pgflow bool // a dag without a profile gets that of pgflow
	Known  bool // an unknown field is an error
}

// Parse reads a definition with these options. See the function Parse.
func (o Reading) Parse(text []byte) (*Definition, error) {
	return o.parseWith(text, readerFor(text), MaxNodes)
}

func (o Reading) parseWith(text []byte, read func([]byte, *Reporter) textValue, nodes int) (*Definition, error) {
	r := &Reporter{}
	written := read(trimBOM(text), r)
	if written == nil {
		return nil, r.All().Err()
	}
	r.root = r.respellPgflow(written, o.Pgflow, nil)
	d := decodeDefinition(r, nodes, o.Known)
	if d != nil && d.Profile == "" && namesPgflow(written, o.Pgflow) {
		d.Profile = ProfilePgflow
	}
	if v, ok := written.(*jsonValue); ok {
		v.source.caching = false
	}
	return d, r.All().Err()
}

// YAMLToJSON converts a YAML text to JSON with keys in the written order, which is the order of the
// nodes of a dag. The error is of type Problems.
func YAMLToJSON(text []byte) ([]byte, error) {
	r := &Reporter{}
	root := readYAML(trimBOM(text), r)
	if err := r.All().Err(); err != nil {
		return nil, err
	}
	return appendJSON(nil, root), nil
}

// trimBOM removes the byte order mark from a text.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

// rejectUTF16 reports whether a text is in UTF-16, with a byte order mark or without. It also adds
// a problem in this case.
func rejectUTF16(text []byte, r *Reporter) bool {
	hasMark := bytes.HasPrefix(text, []byte{0xff, 0xfe}) || bytes.HasPrefix(text, []byte{0xfe, 0xff})
	if !hasMark && bytes.IndexByte(text[:min(2, len(text))], 0) < 0 {
		return false
	}
	r.addProblem(SeverityError, nil, textPosition{line: 1, column: 1}, "the text is in UTF-16: save it as UTF-8")
	return true
}
