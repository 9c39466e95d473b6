package tidy

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// ceilings are the maximal values of the measures. They may only be lowered.
var ceilings = map[string]float64{
	"one-word functions":                       80,
	"one-word types":                           65,
	"function names in five packages or more":  1,
	"hiding words per 1,000 words of comments": 2.1,
	"comment lines over 100 columns":           2,
	"code lines over 140 columns":              361,
	"methods of a type":                        109,
	"fields of a type":                         49,
	"files of a package":                       77,
	"long sentences of 100 in documents":       3,
	"lines of README.md":                       125,
	"words of ARCHITECTURE.md":                 2500,
	"words of CHANGELOG.md":                    600,
}

func TestNoMeasureExceedsItsCeiling(t *testing.T) {
	tree, err := readTree("../../..")
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
			t.Errorf("%s: %.4g is more than %.4g; run go test -v ./internal/tools/tidy for the worst places", m.name, m.value, ceiling)
		}
	}
}

func TestLinksBetweenDocumentsLeadSomewhere(t *testing.T) {
	tree, err := readTree("../../..")
	require.NoError(t, err)
	require.Empty(t, listBrokenLinks(tree, "../../.."))
}

func TestPlacesThatContributorsAreSentToExist(t *testing.T) {
	for _, name := range []string{"CONTRIBUTING.md", "ARCHITECTURE.md"} {
		document, err := os.ReadFile("../../../" + name)
		require.NoError(t, err)
		require.Empty(t, listMissingPlaces(string(document), "../../.."), name)
	}
}

func TestPlaceIsMissingWithoutItsFileOrFunction(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(root, "a"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a", "b.go"), []byte("package a\n\nfunc (t *t) here() {}\n"), 0o600))
	document := "| 1 | `here` | `a/b.go` |\n| 2 | `gone` | `a/b.go` |\nSee `a/c.go`, `flow` and `b.go`.\n"
	require.Equal(t, []string{"a/b.go: there is no function gone", "a/c.go: there is no such file"}, listMissingPlaces(document, root))
}

func TestLinkIsBrokenWithoutItsFileOrHeading(t *testing.T) {
	root := t.TempDir()
	text := "# One `two`, [three](b.md)\n[a](#one-two-three) [b](b.md#there) [c](b.md#gone) [d](gone.md) [e](https://example.org)\n" +
		"```\n[f](gone.md)\n```\n`[g](gone.md)`\n"
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.md"), []byte(text), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "b.md"), []byte("## There\n## There\n[h](#there-1)\n"), 0o600))
	tree, err := readTree(root)
	require.NoError(t, err)
	require.Equal(t, []string{"a.md: b.md#gone: there is no such heading",
		"a.md: gone.md: there is no such file"}, listBrokenLinks(tree, root))
}

func TestSentencesAreThoseOfProse(t *testing.T) {
	const text = "# A heading of a document\n\nFirst one, with `code of many words`. Second\none: a [link to it](https://example.org).\n" +
		"\n```\nno sentence.\n```\n| a | table. |\n\n- An item.\n- Another one\n  that goes on.\n"
	require.Equal(t, []string{"First one, with code", "Second one: a link to it", "An item",
		"Another one that goes on"}, splitSentences(text))
}

func TestLineWithCodeIsNoComment(t *testing.T) {
	for line, want := range map[string]bool{"\t// a": true, "x := 1 // a": false, "//go:generate a": false, " * a": true, "": false} {
		require.Equal(t, want, isComment(line), line)
	}
	require.Equal(t, 9, lineWidth("\t\té"))
}
