package define

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// tab is about lines that are indented with tabs: this one and those behind it.
func (p *yamlPlace) tab() *fault {
	lines := []string{p.line()}
	for _, line := range p.after {
		if !strings.Contains(indentation(line), "\t") {
			break
		}
		lines = append(lines, line)
	}
	msg := "a tab in the indentation: YAML takes spaces"
	if len(lines) > 1 {
		msg += fmt.Sprintf(" (so does it in the lines up to %d)", p.number()+len(lines)-1)
	}
	widths := []int{2, 4, 8, 1}
	for _, level := range p.levels() { // a line of its own may have any
		widths = append(widths, level.spaces)
	}
	var mends []mend
	for _, width := range widths {
		mends = append(mends, untabbed(lines, p.number(), width))
	}
	return p.here(strings.Index(p.line(), "\t")+1, msg, mends...)
}

// untabbed puts spaces in the place of the tabs before lines.
func untabbed(lines []string, number, width int) (m mend) {
	for i, line := range lines {
		before := indentation(line)
		if put := strings.ReplaceAll(before, "\t", strings.Repeat(" ", width)); put != before {
			m = append(m, edit{number + i, 1, len(before), put})
		}
	}
	return m
}

func indentation(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// level is an indentation that lines above have.
type level struct{ spaces, line int }

// levels are the indentations that a line may have here: those of the lines above which it would be beside.
func (p *yamlPlace) levels() (all []level) {
	least := 1 << 30
	for i := len(p.lines) - 2; i >= 0 && least > 0; i-- {
		line := p.lines[i]
		text := strings.TrimLeft(line, " ")
		if text == "" || text[0] == '#' {
			continue
		}
		at := len(line) - len(text)
		for strings.HasPrefix(text, "- ") { // what begins behind the dash is beside it, too
			inner := strings.TrimLeft(text[2:], " ")
			if column := len(line) - len(inner); column < least {
				all = append(all, level{column, i + 1})
			}
			text = inner
		}
		if at < least {
			all, least = append(all, level{at, i + 1}), at
		}
	}
	return all
}

// indented is about a line that stands at no level.
func (p *yamlPlace) indented(spaces int) *fault {
	levels := p.levels()
	if slices.ContainsFunc(levels, func(l level) bool { return l.spaces == spaces }) {
		if strings.Contains(p.problem, "'-'") {
			return p.here(spaces+1, "an entry of the list above is expected here: write - before it, or indent it otherwise")
		}
		return p.here(spaces+1, "a key with its value is expected here, as in the lines above")
	}
	slices.SortStableFunc(levels, func(a, b level) int { return cmp.Compare(abs(a.spaces-spaces), abs(b.spaces-spaces)) })
	var may []string
	var mends []mend
	for _, l := range levels {
		if len(may) < 2 {
			may = append(may, fmt.Sprintf("%s as in line %d", counted(l.spaces, "space"), l.line))
		}
		mends = append(mends, p.moved(spaces, l.spaces, nil), p.moved(spaces, l.spaces, p.after))
	}
	msg := "the line is indented by " + counted(spaces, "space") + ", like none of those that it could be beside: "
	return p.here(spaces+1, msg+"write "+strings.Join(may, ", or "), mends...)
}

// moved indents the line in another way, and with it those behind it that are indented below it.
func (p *yamlPlace) moved(from, to int, behind []string) (m mend) {
	lines := []string{p.line()}
	for _, line := range behind {
		if strings.TrimSpace(line) != "" && len(indentation(line)) <= from {
			break
		}
		lines = append(lines, line)
	}
	for i := range lines {
		if to > from {
			m = append(m, edit{p.number() + i, 1, 0, strings.Repeat(" ", to-from)})
		} else {
			m = append(m, edit{p.number() + i, 1, from - to, ""})
		}
	}
	return m
}

func abs(n int) int { return max(n, -n) }

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// colon is about a colon where none can be: a second one in a line, or that of a line which is a part of the one above.
func (p *yamlPlace) colon(spaces int) *fault {
	line := p.line()
	first := strings.Index(line, ": ")
	if first < 0 || utf8.RuneCountInString(line[:first]) >= p.column-1 {
		above := len(p.lines) - 1
		for above > 0 && strings.TrimSpace(p.lines[above-1]) == "" {
			above--
		}
		if above > 0 && len(indentation(p.lines[above-1])) == spaces && !strings.Contains(p.lines[above-1], ": ") {
			return p.noKey(above, ", and this one goes on with it")
		}
		return p.indented(spaces)
	}
	value := first + 2
	return p.here(p.column, `a second ": " in the line: put the value in quotes`, p.quoted(value)...)
}

// quoted puts what begins at an offset of the line in quotes: up to its end, or to the next mark if it is inside brackets.
func (p *yamlPlace) quoted(from int) []mend {
	line := p.line()
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
	return []mend{{{p.number(), end, 0, mark}, {p.number(), column, 0, mark}}}
}

// noKey is about a line that lacks the colon behind its key.
func (p *yamlPlace) noKey(number int, more string) *fault {
	line := p.lines[number-1]
	before := indentation(line)
	text := strings.TrimRight(line[len(before):], " ")
	f := &fault{line: number, column: utf8.RuneCountInString(before) + 1}
	if key, _, glued := strings.Cut(text, ":"); glued && !strings.ContainsAny(key, " \"'") {
		f.column += utf8.RuneCountInString(key) + 1
		f.msg = "a space is missing behind the colon: write " + shorten(key) + ": …"
		f.mends = []mend{{{number, f.column, 0, " "}}}
		return f
	}
	word, rest, several := strings.Cut(text, " ")
	f.msg = fmt.Sprintf("%.40q is no key with a value%s: write %s: …", text, more, shorten(word))
	end := f.column + utf8.RuneCountInString(word)
	f.mends = []mend{{{number, end, 0, ":"}}}
	if several && strings.HasPrefix(rest, "=") {
		f.mends = []mend{{{number, end, 2, ":"}}}
	}
	return f
}

// start is about a character that no text can begin with.
func (p *yamlPlace) start(msg string) *fault {
	from := behindRunes([]byte(p.line()), p.column-1)
	return p.here(p.column, msg, p.quoted(from)...)
}

func (p *yamlPlace) alias(name string) *fault {
	from := max(strings.Index(p.line(), "*"+name), 0)
	return p.here(utf8.RuneCountInString(p.line()[:from])+1,
		fmt.Sprintf("the alias *%.80s stands for nothing: write &%.80s before what is meant, or put the text in quotes", name, name), p.quoted(from)...)
}

// quote is about a text in quotes without an end.
func (p *yamlPlace) quote() *fault {
	r := []rune(p.line())
	mark := string(r[min(p.column, len(r))-1])
	text := strings.TrimRight(p.line(), " ")
	end := utf8.RuneCountInString(text) + 1
	inside := end - (len(text) - len(strings.TrimRight(text, "]}, ")))
	return p.here(p.column, "the text in quotes that begins here has no end: write "+mark+" behind it",
		mend{{p.number(), end, 0, mark}}, mend{{p.number(), inside, 0, mark}})
}
