package define

import (
	"bytes"
	"math"
)

// Parse reads a definition in JSON, if the text begins with {, or in YAML.
//
// The error is of the type Problems and tells all of them. What is wrong with the syntax is mended as it was probably meant, for
// the sake of what is wrong beside it. The definition is nil if that leads nowhere; else it is what could be understood of it, and compiling it tells the problems of
// the text together with its own, and what warnings there are.
func Parse(text []byte) (*Definition, error) {
	return parse(text, reading(text), MaxNodes)
}

// ParsePublished is Parse for a text that was published, which may have any number of nodes.
func ParsePublished(text []byte) (*Definition, error) { return parse(text, reading(text), math.MaxInt) }

// reading says how to read a text.
func reading(text []byte) func([]byte, *Reporter) value {
	if bytes.HasPrefix(bytes.TrimLeft(plain(text), " \t\r\n"), []byte{'{'}) {
		return mendJSON
	}
	return readYAML
}

// ParseJSON is Parse for a text that is known to be JSON.
func ParseJSON(text []byte) (*Definition, error) { return parse(text, mendJSON, MaxNodes) }

// ParseYAML is Parse for a text that is known to be YAML.
func ParseYAML(text []byte) (*Definition, error) { return parse(text, readYAML, MaxNodes) }

func parse(text []byte, read func([]byte, *Reporter) value, nodes int) (*Definition, error) {
	r := &Reporter{}
	r.root = read(plain(text), r)
	if r.root == nil {
		return nil, r.All().Err()
	}
	d := decodeDefinition(r, nodes)
	if v, ok := r.root.(*jsonValue); ok {
		v.in.keep = false
	}
	return d, r.All().Err()
}

// YAMLToJSON is the JSON of a YAML text, keys in the order written, which is that of the nodes of a dag. The
// error is of the type Problems.
func YAMLToJSON(text []byte) ([]byte, error) {
	r := &Reporter{}
	root := readYAML(plain(text), r)
	if err := r.All().Err(); err != nil {
		return nil, err
	}
	return appendJSON(nil, root), nil
}

// plain is a text without the mark that some editors put before it.
func plain(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
