package tidy

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// sentenceWords is the maximal number of words in a sentence of a document.
const sentenceWords = 28

var (
	codeSpan    = regexp.MustCompile("`[^`]*`")
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	listMark    = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	sentenceEnd = regexp.MustCompile(`[.!?](?:\s+|$)`)
)

// measureSentences returns the percentage of long sentences in documents.
func measureSentences(t *sourceTree) codeMeasure {
	m := codeMeasure{name: "long sentences of 100 in documents"}
	total, long := 0, 0
	for _, f := range t.documents {
		if path.Base(f.name) == "CHANGELOG.md" {
			continue
		}
		for _, s := range splitSentences(f.text) {
			n := len(strings.Fields(s))
			total++
			if n > sentenceWords {
				long++
				m.places = append(m.places, countedPlace{fmt.Sprintf("%s: %.60s …", f.name, s), float64(n)})
			}
		}
	}
	m.value = 100 * float64(long) / float64(max(total, 1))
	return m
}

// measureLength returns the number of units of a document, such as its lines or words.
func measureLength(t *sourceTree, document, units string, count func(text string) int) codeMeasure {
	m := codeMeasure{name: units + " of " + document}
	for _, f := range t.documents {
		if f.name == document {
			m.value = float64(count(f.text))
		}
	}
	return m
}

func countLines(text string) int { return strings.Count(text, "\n") }
func countWords(text string) int { return len(strings.Fields(text)) }

// splitSentences returns the sentences of a document's prose. It skips code blocks, tables and
// headings. A code span counts as one word, and each list item as a paragraph.
func splitSentences(text string) []string {
	var sentences, paragraph []string
	end := func() {
		if len(paragraph) > 0 {
			sentences = append(sentences, sentencesOf(strings.Join(paragraph, " "))...)
		}
		paragraph = nil
	}
	fenced := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case strings.HasPrefix(trimmed, "```"):
			end()
			fenced = !fenced
		case fenced:
		case trimmed == "", strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "<"):
			end()
		default:
			if listMark.MatchString(line) {
				end()
				line = listMark.ReplaceAllString(line, "")
			}
			paragraph = append(paragraph, strings.TrimSpace(line))
		}
	}
	end()
	return sentences
}

func sentencesOf(paragraph string) []string {
	paragraph = link.ReplaceAllString(codeSpan.ReplaceAllString(paragraph, "code"), "$1")
	var sentences []string
	for _, s := range sentenceEnd.Split(paragraph, -1) {
		if s = strings.TrimSpace(s); s != "" {
			sentences = append(sentences, s)
		}
	}
	return sentences
}
