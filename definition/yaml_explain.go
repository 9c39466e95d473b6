package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// explainTab explains lines that are indented with tabs: the current line and the following ones.
func (p *yamlPlace) explainTab() *syntaxFault {
	lines := []string{p.currentLine()}
	for _, line := range p.after {
		if !strings.Contains(leadingSpace(line), "\t") {
			break
		}
		lines = append(lines, line)
	}
	msg := "a tab in the indentation: YAML takes spaces"
	if len(lines) > 1 {
		msg += fmt.Sprintf(" (so does it in the lines up to %d)", p.lineNumber()+len(lines)-1)
	}
	widths := []int{2, 4, 8, 1}
	for _, level := range p.indentLevels() { // a single line may have any of these
		widths = append(widths, level.spaces)
	}
	var mends []faultRepair
	for _, width := range widths {
		mends = append(mends, replaceTabs(lines, p.lineNumber(), width))
	}
	return p.faultHere(strings.Index(p.currentLine(), "\t")+1, msg, mends...)
}

// replaceTabs replaces the tabs before lines by spaces.
func replaceTabs(lines []string, number, width int) (m faultRepair) {
	for i, line := range lines {
		before := leadingSpace(line)
		if put := strings.ReplaceAll(before, "\t", strings.Repeat(" ", width)); put != before {
			m = append(m, lineEdit{number + i, 1, len(before), put})
		}
	}
	return m
}

func leadingSpace(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// indentLevel is an indentation of a line above.
type indentLevel struct{ spaces, line int }

// indentLevels returns the possible indentations of the current line: the indentations of lines
// above that may be siblings of the current line.
func (p *yamlPlace) indentLevels() (all []indentLevel) {
	least := 1 << 30
	for i := len(p.lines) - 2; i >= 0 && least > 0; i-- {
		line := p.lines[i]
		text := strings.TrimLeft(line, " ")
		if text == "" || text[0] == '#' {
			continue
		}
		at := len(line) - len(text)
		for strings.HasPrefix(text, "- ") { // the content after the dash counts as a sibling, too
			inner := strings.TrimLeft(text[2:], " ")
			if column := len(line) - len(inner); column < least {
				all = append(all, indentLevel{column, i + 1})
			}
			text = inner
		}
		if at < least {
			all, least = append(all, indentLevel{at, i + 1}), at
		}
	}
	return all
}

// explainIndent explains a line with an indentation that matches no level.
func (p *yamlPlace) explainIndent(spaces int) *syntaxFault {
	levels := p.indentLevels()
	if slices.ContainsFunc(levels, func(l indentLevel) bool { return l.spaces == spaces }) {
		if strings.Contains(p.problem, "'-'") {
			return p.faultHere(spaces+1, "an entry of the list above is expected here: write - before it, or indent it otherwise")
		}
		return p.faultHere(spaces+1, "a key with its value is expected here, as in the lines above")
	}
	slices.SortStableFunc(levels, func(a, b indentLevel) int { return cmp.Compare(abs(a.spaces-spaces), abs(b.spaces-spaces)) })
	var may []string
	var mends []faultRepair
	for _, l := range levels {
		if len(may) < 2 {
			may = append(may, fmt.Sprintf("%s as in line %d", countText(l.spaces, "space"), l.line))
		}
		mends = append(mends, p.reindentLines(spaces, l.spaces, nil), p.reindentLines(spaces, l.spaces, p.after))
	}
	msg := "the line is indented by " + countText(spaces, "space") + ", like none of those that it could be beside: "
	return p.faultHere(spaces+1, msg+"write "+strings.Join(may, ", or "), mends...)
}

// reindentLines changes the indentation of the line, and of the following lines that are nested
// below it.
func (p *yamlPlace) reindentLines(from, to int, behind []string) (m faultRepair) {
	lines := []string{p.currentLine()}
	for _, line := range behind {
		if strings.TrimSpace(line) != "" && len(leadingSpace(line)) <= from {
			break
		}
		lines = append(lines, line)
	}
	for i := range lines {
		if to > from {
			m = append(m, lineEdit{p.lineNumber() + i, 1, 0, strings.Repeat(" ", to-from)})
		} else {
			m = append(m, lineEdit{p.lineNumber() + i, 1, from - to, ""})
		}
	}
	return m
}

func abs(n int) int { return max(n, -n) }

func countText(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// explainColon explains an unexpected colon: a second one in a line, or one in a line that
// continues the line above.
func (p *yamlPlace) explainColon(spaces int) *syntaxFault {
	line := p.currentLine()
	first := strings.Index(line, ": ")
	if first < 0 || utf8.RuneCountInString(line[:first]) >= p.column-1 {
		above := len(p.lines) - 1
		for above > 0 && strings.TrimSpace(p.lines[above-1]) == "" {
			above--
		}
		if above > 0 && len(leadingSpace(p.lines[above-1])) == spaces && !strings.Contains(p.lines[above-1], ": ") {
			return p.explainNoKey(above, ", and this one goes on with it")
		}
		return p.explainIndent(spaces)
	}
	value := first + 2
	return p.faultHere(p.column, `a second ": " in the line: put the value in quotes`, p.quoteRepairs(value)...)
}

// quoteRepairs puts the text from an offset of the line on in quotes, up to the end of the line, or
// inside brackets up to the next mark.
func (p *yamlPlace) quoteRepairs(from int) []faultRepair {
	line := p.currentLine()
	rest := line[from:]
	if i := strings.Index(rest, " #"); i >= 0 {
		rest = rest[:i]
	}
	if strings.ContainsAny(line[:from], "[{") {
		if i := strings.IndexAny(rest, ",]}"); i >= 0 {
			rest = rest[:i]
		}
	}
	rest = strings.TrimRight(rest, " \t")
	mark := `"`
	if strings.ContainsAny(rest, `"\`) {
		mark = `'`
	}
	if rest == "" || strings.Contains(rest, mark) {
		return nil
	}
	column := utf8.RuneCountInString(line[:from]) + 1
	end := column + utf8.RuneCountInString(rest)
	return []faultRepair{{{p.lineNumber(), end, 0, mark}, {p.lineNumber(), column, 0, mark}}}
}

// explainNoKey explains a line without a colon after its key.
func (p *yamlPlace) explainNoKey(number int, more string) *syntaxFault {
	line := p.lines[number-1]
	before := leadingSpace(line)
	text := strings.TrimRight(line[len(before):], " ")
	f := &syntaxFault{line: number, column: utf8.RuneCountInString(before) + 1}
	if key, _, glued := strings.Cut(text, ":"); glued && !strings.ContainsAny(key, " \"'") {
		f.column += utf8.RuneCountInString(key) + 1
		f.msg = "a space is missing behind the colon: write " + shortenName(key) + ": …"
		f.repairs = []faultRepair{{{number, f.column, 0, " "}}}
		return f
	}
	word, rest, several := strings.Cut(text, " ")
	f.msg = fmt.Sprintf("%.40q is no key with a value%s: write %s: …", text, more, shortenName(word))
	end := f.column + utf8.RuneCountInString(word)
	f.repairs = []faultRepair{{{number, end, 0, ":"}}}
	if several && strings.HasPrefix(rest, "=") {
		f.repairs = []faultRepair{{{number, end, 2, ":"}}}
	}
	return f
}

// explainStart explains a character that no text can begin with.
func (p *yamlPlace) explainStart(msg string) *syntaxFault {
	from := behindRunes([]byte(p.currentLine()), p.column-1)
	return p.faultHere(p.column, msg, p.quoteRepairs(from)...)
}

func (p *yamlPlace) explainAlias(name string) *syntaxFault {
	from := max(strings.Index(p.currentLine(), "*"+name), 0)
	return p.faultHere(utf8.RuneCountInString(p.currentLine()[:from])+1,
		fmt.Sprintf("the alias *%.80s stands for nothing: write &%.80s before what is meant, or "+
			"put the text in quotes", name, name), p.quoteRepairs(from)...)
}

// explainQuote explains a quoted text without an end.
func (p *yamlPlace) explainQuote() *syntaxFault {
	r := []rune(p.currentLine())
	mark := string(r[min(p.column, len(r))-1])
	text := strings.TrimRight(p.currentLine(), " ")
	end := utf8.RuneCountInString(text) + 1
	inside := end - (len(text) - len(strings.TrimRight(text, "]}, ")))
	return p.faultHere(p.column, "the text in quotes that begins here has no end: write "+mark+" behind it",
		faultRepair{{p.lineNumber(), end, 0, mark}}, faultRepair{{p.lineNumber(), inside, 0, mark}})
}
