package flow

import (
	"bytes"
	"math"
)

// ParseDefinition reads a definition in JSON, if the text begins with {, or in YAML.
//
// The error is of the type Problems and tells all of them. The definition is nil if the text could
// not be read at all; else it is what could be understood of it, and Compile tells the problems of
// the text together with its own, and what warnings there are.
func ParseDefinition(text []byte) (*Definition, error) {
	return parse(text, reading(text), maxNodes)
}

// ParsePublished is ParseDefinition for a text that was published, which may have any number of nodes.
func ParsePublished(text []byte) (*Definition, error) { return parse(text, reading(text), math.MaxInt) }

// reading says how to read a text.
func reading(text []byte) func([]byte, *reporter) value {
	if bytes.HasPrefix(bytes.TrimLeft(plain(text), " \t\r\n"), []byte{'{'}) {
		return readJSON
	}
	return readYAML
}

// ParseJSON is ParseDefinition for a text that is known to be JSON.
func ParseJSON(text []byte) (*Definition, error) { return parse(text, readJSON, maxNodes) }

// ParseYAML is ParseDefinition for a text that is known to be YAML.
func ParseYAML(text []byte) (*Definition, error) { return parse(text, readYAML, maxNodes) }

func parse(text []byte, read func([]byte, *reporter) value, nodes int) (*Definition, error) {
	r := &reporter{}
	r.root = read(plain(text), r)
	if r.root == nil {
		return nil, r.all().Err()
	}
	d := decodeDefinition(r, nodes)
	if v, ok := r.root.(*jsonValue); ok {
		v.in.keep = false
	}
	return d, r.all().Err()
}

// CompileText parses and compiles a definition, so that all of its problems are told at once. The
// plan is nil if there is an error among them.
func CompileText(text []byte, limits Limits) (*Plan, Problems) {
	d, err := ParseDefinition(text)
	if d == nil {
		return nil, err.(Problems)
	}
	return Compile(d, limits)
}

// YAMLToJSON is the JSON of a YAML text, keys in the order written, which is that of the nodes of a dag. The
// error is of the type Problems.
func YAMLToJSON(text []byte) ([]byte, error) {
	r := &reporter{}
	root := readYAML(plain(text), r)
	if err := r.all().Err(); err != nil {
		return nil, err
	}
	return appendJSON(nil, root), nil
}

// plain is a text without the mark that some editors put before it.
func plain(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }
