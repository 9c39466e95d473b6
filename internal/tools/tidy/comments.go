package tidy

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// hidingWords are words of comments that hide their subject or treat a component as a person.
var hidingWords = map[string]bool{
	"what": true, "who": true, "whoever": true, "whom": true, "whose": true, "nobody": true, "somebody": true, "anybody": true,
	"tell": true, "tells": true, "told": true, "say": true, "says": true, "lest": true, "he": true, "him": true, "his": true,
}

var word = regexp.MustCompile(`[A-Za-z']+`)

// measureCommentWords counts the hiding words in comments of Go, per 1,000 words.
func measureCommentWords(t *sourceTree) codeMeasure {
	m := codeMeasure{name: "hiding words per 1,000 words of comments"}
	words, hiding := 0, 0
	byFolder := map[string]int{}
	for _, f := range t.goFiles {
		for _, group := range f.syntax.Comments {
			for _, w := range word.FindAllString(strings.ToLower(group.Text()), -1) {
				words++
				if hidingWords[w] {
					hiding++
					byFolder[f.folder]++
				}
			}
		}
	}
	m.value = 1000 * float64(hiding) / float64(max(words, 1))
	for folder, n := range byFolder {
		m.places = append(m.places, countedPlace{folder, float64(n)})
	}
	return m
}

// Maximal widths of lines in characters. A tab counts as four.
const (
	commentColumns = 100
	codeColumns    = 140
)

// measureCommentLines counts the overlong comment lines in Go and TypeScript.
func measureCommentLines(t *sourceTree) codeMeasure {
	return countPlaces("comment lines over 100 columns", wideLines(t, func(line string) bool {
		return isComment(line) && lineWidth(line) > commentColumns
	}))
}

// measureCodeLines counts the overlong lines of code in Go and TypeScript, without struct tags,
// which cannot be wrapped.
func measureCodeLines(t *sourceTree) codeMeasure {
	return countPlaces("code lines over 140 columns", wideLines(t, func(line string) bool {
		return !isComment(line) && !hasTag(line) && lineWidth(line) > codeColumns
	}))
}

func wideLines(t *sourceTree, isWide func(line string) bool) []countedPlace {
	var places []countedPlace
	add := func(f textFile) {
		for i, line := range f.lines {
			if isWide(line) {
				places = append(places, countedPlace{fmt.Sprintf("%s:%d", f.name, i+1), float64(lineWidth(line))})
			}
		}
	}
	for _, f := range t.goFiles {
		add(f.textFile)
	}
	for _, f := range t.typeScript {
		add(f)
	}
	return places
}

func lineWidth(line string) int { return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t") }

// hasTag reports whether a line is a field with a tag that describes it.
func hasTag(line string) bool {
	return strings.HasSuffix(line, "`") && (strings.Contains(line, ` doc:"`) || strings.Contains(line, ` help:"`))
}

// isComment reports whether a line is only a comment. Directives of the compiler count as code.
func isComment(line string) bool {
	line = strings.TrimLeft(line, " \t")
	return strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "//go:") || strings.HasPrefix(line, "* ") || strings.HasPrefix(line, "/*")
}
