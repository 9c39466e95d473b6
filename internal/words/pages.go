package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	// pageComment matches a comment or an import of the catalogue, which hold no texts.
	pageComment = regexp.MustCompile(`(?m)/\*(?s:.*?)\*/|^\s*//.*$|^import .*$`)
	// pageText matches a text of the catalogue, between the quotes that TypeScript knows.
	pageText = regexp.MustCompile("'((?:[^'\\\\\n]|\\\\.)*)'|\"((?:[^\"\\\\\n]|\\\\.)*)\"|`((?:[^`\\\\]|\\\\.)*)`")
	// pageJoin matches the seam of a text that is written in two lines.
	pageJoin = regexp.MustCompile("'\n\\s*\\+ '|`\n\\s*\\+ `")
	// letters matches a word, which every text for readers has.
	letters = regexp.MustCompile(`\pL{2}`)
)

// readPages returns the texts of the pages: labels, messages, and what empty lists and errors say.
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
