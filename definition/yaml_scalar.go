package definition

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/troupe-engine/troupe/flow/expr"
)

// YAMLScalar converts a scalar of a YAML text to the JSON of its type, in the same way as in a
// definition. A number follows YAML 1.2 and keeps all its digits; a date becomes the written text.
// YAMLScalar returns an error and null for a number that YAML 1.1 and 1.2 read differently. The
// same applies to a value that does not fit its tag.
func YAMLScalar(n *yaml.Node) (json.RawMessage, error) {
	tag := n.ShortTag()
	if tag == "!!str" && n.Style == 0 && isLongNumber(n.Value) {
		tag = "!!float"
	}
	kind, value := expr.KindString, expr.Quote(n.Value)
	var err error
	switch tag {
	case "!!null":
		if !slices.Contains([]string{"", "~", "null", "Null", "NULL"}, n.Value) {
			return noValue, fmt.Errorf("%.40q is no %s", n.Value, tag)
		}
		return noValue, nil
	case "!!bool":
		kind, value = expr.KindBool, json.RawMessage(strings.ToLower(n.Value))
	case "!!int", "!!float":
		kind = expr.KindNumber
		value, err = yamlNumber(n.Value)
	}
	switch {
	case err != nil:
		return noValue, fmt.Errorf("%.40q %w", n.Value, err)
	case expr.KindOf(value) != kind || !json.Valid(value):
		return noValue, fmt.Errorf("%.40q is no %s", n.Value, tag)
	}
	return value, nil
}

// yamlTags contains the tags of the types that JSON has, with the kind of node for each tag.
var yamlTags = map[string]yaml.Kind{
	"!!map": yaml.MappingNode, "!!seq": yaml.SequenceNode, "!!str": yaml.ScalarNode,
	"!!int": yaml.ScalarNode, "!!float": yaml.ScalarNode, "!!bool": yaml.ScalarNode,
	"!!null": yaml.ScalarNode, "!!timestamp": yaml.ScalarNode,
}

// CheckYAMLTag returns an error for a node with an unsuitable tag: the name of a type that JSON
// does not have, or of a kind of value that the node does not have.
func CheckYAMLTag(n *yaml.Node) error {
	tag := n.ShortTag()
	kind, known := yamlTags[tag]
	switch {
	case n.Style&yaml.TaggedStyle == 0 || tag == "!" || known && kind == n.Kind:
		return nil
	case known:
		return fmt.Errorf("the tag %s does not fit the value: leave it out", tag)
	}
	return fmt.Errorf("the tag %.40s has no meaning here: leave it out, and write a text, a number, "+
		"a list or an object", tag)
}
