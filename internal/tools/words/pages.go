package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// pageComment matches a comment or an import of the catalogue; they contain no texts.
	pageComment = regexp.MustCompile(`(?m)/\*(?s:.*?)\*/|^\s*//.*$|^import .*$`)
	// pageText matches a text of the catalogue, in any kind of TypeScript quotes.
	pageText = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`((?:[^`\\\\]|\\\\.)*)`")
	// pageJoin matches the joint of a text that spans two lines.
	pageJoin = regexp.MustCompile("'\n\\s*\\+ '|`\n\\s*\\+ `")
	// letters matches a word; every text for readers contains a word.
	letters = regexp.MustCompile(`\pL{2}`)
)

// readPages returns the texts of the pages: labels, messages, and texts of empty lists and errors.
func readPages(root string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(root, "api", "ui", "src", "texts.ts"))
	if err != nil {
		return nil, err
	}
	source := pageJoin.ReplaceAllString(pageComment.ReplaceAllString(string(data), ""), "")
	var lines []string
	for _, m := range pageText.FindAllStringSubmatch(source, -1) {
		text := strings.ReplaceAll(m[1]+m[2]+m[3], `\n`, " ")
		if text = strings.Join(strings.Fields(text), " "); letters.MatchString(text) {
			lines = append(lines, "page "+text)
		}
	}
	return lines, nil
}
