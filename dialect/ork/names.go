package ork

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/troupe-engine/troupe/flow"
)

// MaxName is the maximum length in bytes of the name of a workflow or a task.
const MaxName = 128

// CheckName rejects invalid names of workflows. Names are parts of URLs.
func CheckName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return flow.Errorf(flow.Invalid, "workflow name cannot be empty")
	case len(name) > MaxName:
		return flow.Errorf(flow.Invalid, "the name %.40q… is longer than %d bytes", name, MaxName)
	case strings.ContainsFunc(name, func(r rune) bool { return r == '/' || unicode.IsControl(r) }), name == ".", name == "..":
		return flow.Errorf(flow.Invalid, "the name %.140q has a / or a control character in it, "+
			"or is nothing but dots: it is a part of URLs", name)
	}
	return nil
}

// nodeKeys maps the keys of nodes to their tasks.
type nodeKeys map[string]string // name of the task with this key

// reservedKeys are keys with another meaning in a dag.
var reservedKeys = map[string]bool{"run": true, "output": true}

// addKey derives the key of a task from its name, with invalid characters replaced. another is the
// task that already has the key, or "".
func (k nodeKeys) addKey(name string) (key, another string) {
	key = strings.Map(func(r rune) rune {
		if r == '_' || r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
	if key == "" || unicode.IsDigit(rune(key[0])) {
		key = "_" + key
	}
	if reservedKeys[key] {
		key += "_"
	}
	another = k[key]
	made := key
	for n := 2; ; n++ {
		if _, taken := k[made]; !taken {
			k[made] = name
			return made, another
		}
		made = key + "_" + strconv.Itoa(n)
	}
}

// findTask finds the task at the beginning of a reference. If several names match, the longest name
// applies. rest is the path after the name.
func (r *reader) findTask(text string) (t *task, rest string) {
	for end := len(text); end > 0; end = strings.LastIndexByte(text[:end], '.') {
		if t := r.byName[text[:end]]; t != nil {
			return t, strings.TrimPrefix(text[end:], ".")
		}
	}
	return nil, ""
}
