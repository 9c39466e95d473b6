package tidy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ceilings are the maximal values of the measures. They may only be lowered.
var ceilings = map[string]float64{
	"one-word functions":                       93,
	"one-word types":                           70,
	"function names in five packages or more":  1,
	"hiding words per 1,000 words of comments": 39.8,
	"comment lines over 100 columns":           197,
	"code lines over 140 columns":              3855,
	"methods of a type":                        265,
	"fields of a type":                         52,
	"files of a package":                       77,
	"long sentences of 100 in documents":       23.2,
	"lines of README.md":                       580,
}

func TestNoMeasureExceedsItsCeiling(t *testing.T) {
	tree, err := readTree("../..")
	require.NoError(t, err)
	measures := measureTree(tree)
	require.Equal(t, len(ceilings), len(measures), "each measure has a ceiling")
	for _, m := range measures {
		ceiling, known := ceilings[m.name]
		require.True(t, known, m.name)
		t.Logf("%s: %.4g, at most %.4g", m.name, m.value, ceiling)
		for _, p := range m.worstPlaces() {
			t.Log(p)
		}
		if m.value > ceiling {
			t.Errorf("%s: %.4g is more than %.4g; run go test -v ./internal/tidy for the worst places", m.name, m.value, ceiling)
		}
	}
}

func TestSentencesAreThoseOfProse(t *testing.T) {
	const text = "# A heading of a document\n\nFirst one, with `code of many words`. Second\none: a [link to it](https://example.org).\n" +
		"\n```\nno sentence.\n```\n| a | table. |\n\n- An item.\n- Another one\n  that goes on.\n"
	require.Equal(t, []string{"First one, with code", "Second one: a link to it", "An item", "Another one that goes on"}, splitSentences(text))
}

func TestLineWithCodeIsNoComment(t *testing.T) {
	for line, want := range map[string]bool{"\t// a": true, "x := 1 // a": false, "//go:generate a": false, " * a": true, "": false} {
		require.Equal(t, want, isComment(line), line)
	}
	require.Equal(t, 9, lineWidth("\t\té"))
}
