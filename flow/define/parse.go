package define

import (
	"bytes"
	"math"
)

// Parse reads a definition in JSON, if the text begins with {, or in YAML.
//
// The error is of the type Problems and tells all of them. What is wrong with the syntax is mended
// as it was probably meant, for the sake of what is wrong beside it. The definition is nil if that
// leads nowhere; else it is what could be understood of it, and compiling it tells the problems of
// the text together with its own, and what warnings there are.
func Parse(text []byte) (*Definition, error) { return Reading{}.Parse(text) }

// ParsePublished is Parse for a text that was published, which may have any number of nodes.
func ParsePublished(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, readerFor(text), math.MaxInt)
}

// readerFor says how to read a text.
func readerFor(text []byte) func([]byte, *Reporter) textValue {
	if bytes.HasPrefix(bytes.TrimLeft(trimBOM(text), " \t\r\n"), []byte{'{'}) {
		return mendJSON
	}
	return readYAML
}

// ParseJSON is Parse for a text that is known to be JSON.
func ParseJSON(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, mendJSON, MaxNodes)
}

// ParseYAML is Parse for a text that is known to be YAML.
func ParseYAML(text []byte) (*Definition, error) {
	return Reading{}.parseWith(text, readYAML, MaxNodes)
}

// Reading says how definitions are read that come by a certain route.
type Reading struct {
	Pgflow bool // a dag that names no profile has pgflow's
	Known  bool // a field that is not known is an error
}

// Parse is the function Parse.
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

// YAMLToJSON is the JSON of a YAML text, keys in the order written, which is that of the nodes of a
// dag. The error is of the type Problems.
func YAMLToJSON(text []byte) ([]byte, error) {
	r := &Reporter{}
	root := readYAML(trimBOM(text), r)
	if err := r.All().Err(); err != nil {
		return nil, err
	}
	return appendJSON(nil, root), nil
}

// trimBOM is a text without the mark that some editors put before it.
func trimBOM(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
