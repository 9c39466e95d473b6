package tidy

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`^#{1,6}\s+(.*)$`)
	absolute   = regexp.MustCompile(`^[a-z]+:`)
	notInSlug  = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// listBrokenLinks returns the links between documents that lead to no file or to no heading. Links
// to other hosts are not followed.
func listBrokenLinks(t *sourceTree, root string) []string {
	headings := map[string]map[string]bool{} // the slugs of each document
	for _, f := range t.documents {
		headings[f.name] = headingSlugs(f.lines)
	}
	var broken []string
	for _, f := range t.documents {
		for _, target := range linksOf(f.lines) {
			file, anchor, _ := strings.Cut(target, "#")
			name := f.name
			if file != "" {
				name = path.Join(path.Dir(f.name), file)
			}
			_, err := os.Stat(filepath.Join(root, filepath.FromSlash(name)))
			slugs, isDocument := headings[name]
			switch {
			case err != nil:
				broken = append(broken, fmt.Sprintf("%s: %s: there is no such file", f.name, target))
			case anchor != "" && isDocument && !slugs[anchor]:
				broken = append(broken, fmt.Sprintf("%s: %s: there is no such heading", f.name, target))
			}
		}
	}
	return broken
}

// linksOf returns the relative targets of a document's links. Code has no links.
func linksOf(lines []string) []string {
	var targets []string
	for _, line := range proseLines(lines) {
		for _, m := range linkTarget.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			if !absolute.MatchString(m[1]) {
				targets = append(targets, m[1])
			}
		}
	}
	return targets
}

// headingSlugs returns the anchors that GitHub gives to the headings of a document: a repeated
// heading has a number.
func headingSlugs(lines []string) map[string]bool {
	slugs := map[string]bool{}
	count := map[string]int{}
	for _, line := range proseLines(lines) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		text := strings.ToLower(strings.TrimSpace(link.ReplaceAllString(m[1], "$1")))
		slug := strings.ReplaceAll(notInSlug.ReplaceAllString(text, ""), " ", "-")
		if n := count[slug]; n > 0 {
			slugs[fmt.Sprintf("%s-%d", slug, n)] = true
		} else {
			slugs[slug] = true
		}
		count[slug]++
	}
	return slugs
}

// proseLines returns the lines outside of blocks of code.
func proseLines(lines []string) []string {
	var prose []string
	fenced := false
	for _, line := range lines {
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
			continue
		}
		if !fenced {
			prose = append(prose, line)
		}
	}
	return prose
}
