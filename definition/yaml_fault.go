package definition

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The errors of the YAML parser often lack the place, and describe its grammar. So the place is
// found by parsing shorter and shorter prefixes of the text. The content at that place shows what
// was probably intended.

// yamlSyntax is the syntax of YAML. left is the number of bytes that it may still read to locate
// faults.
type yamlSyntax struct{ left int }

const yamlBudget = 2 << 20

func (y *yamlSyntax) isExhausted() bool { return y.left < 0 }

// decodeYAML decodes the first document of a text, and the second one if there is one.
func decodeYAML(text []byte) (doc, second *yaml.Node, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	doc, second = &yaml.Node{}, &yaml.Node{}
	if err = dec.Decode(doc); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	if err = dec.Decode(second); errors.Is(err, io.EOF) {
		return doc, nil, nil
	}
	return doc, second, err
}

// parseProblem returns the parser's error for a text, without the line. It returns "" if there is
// none.
func (y *yamlSyntax) parseProblem(text []byte) string {
	y.left -= len(text)
	_, _, err := decodeYAML(text)
	if err == nil {
		return ""
	}
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(msg, "line "); ok {
		_, msg, _ = strings.Cut(rest, ": ")
	}
	return msg
}

// readableLength returns a number of lines.
func (y *yamlSyntax) readableLength(text []byte) int {
	problem := y.parseProblem(text)
	if problem == "" {
		return 0
	}
	line, _ := y.findLine(text, problem)
	return line
}

// findLine returns the first line that causes the given error, and the offsets after all lines.
func (y *yamlSyntax) findLine(text []byte, problem string) (line int, ends []int) {
	for i, b := range text {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] != len(text) {
		ends = append(ends, len(text))
	}
	return y.findLeast(len(ends), func(n int) bool { return y.parseProblem(text[:ends[n-1]]) == problem }), ends
}

// findLeast returns the least n such that the condition holds from n up to most. The condition must
// hold for most. The search first goes down in growing steps, because far below n the condition may
// hold for other reasons.
func (y *yamlSyntax) findLeast(most int, so func(n int) bool) int {
	high, low := most, 0
	for step := 1; high > 1; step *= 2 {
		next := max(high-step, 1)
		if y.isExhausted() {
			return most
		}
		if !so(next) {
			low = next
			break
		}
		high = next
	}
	for high-low > 1 {
		middle := (low + high) / 2
		if so(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}

// yamlPlace is the place of an error in a text.
type yamlPlace struct {
	problem string
	lines   []string // lines up to the invalid line, without line ends
	after   []string // following lines
	column  int      // in characters, from 1
}

func (y *yamlSyntax) explainFault(text []byte) *syntaxFault {
	problem := y.parseProblem(text)
	number, ends := y.findLine(text, problem)
	from := 0
	if number > 1 {
		from = ends[number-2]
	}
	line := text[from:ends[number-1]]
	starts := runeEnds(line)
	column := y.findLeast(len(starts), func(n int) bool { return y.parseProblem(text[:from+starts[n-1]]) == problem })
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	f := (&yamlPlace{problem: problem, lines: lines[:number], after: lines[number:], column: column}).explainError()
	f.msg = "invalid YAML: " + f.msg
	return f
}

// runeEnds returns the offsets after each character of a line.
func runeEnds(line []byte) (ends []int) {
	for i := 0; i < len(line); {
		_, size := utf8.DecodeRune(line[i:])
		i += size
		ends = append(ends, i)
	}
	if ends == nil {
		ends = []int{0}
	}
	return ends
}

func (p *yamlPlace) lineNumber() int     { return len(p.lines) }
func (p *yamlPlace) currentLine() string { return p.lines[len(p.lines)-1] }

// explainError explains the error in plain words.
func (p *yamlPlace) explainError() *syntaxFault {
	line, spaces := p.currentLine(), len(p.currentLine())-len(strings.TrimLeft(p.currentLine(), " \t"))
	switch {
	case strings.Contains(line[:spaces], "\t"):
		return p.explainTab()
	case strings.HasPrefix(p.problem, "did not find expected key"), strings.HasPrefix(p.problem, "did not find expected '-'"),
		strings.HasPrefix(p.problem, "block sequence entries"):
		return p.explainIndent(spaces)
	case strings.HasPrefix(p.problem, "mapping values"):
		return p.explainColon(spaces)
	case strings.HasPrefix(p.problem, "could not find expected ':'"):
		return p.explainNoKey(p.lineNumber(), "")
	case strings.HasPrefix(p.problem, "did not find expected ',' or '"), strings.HasPrefix(p.problem, "did not find expected node content"):
		return p.explainBracket()
	case strings.HasPrefix(p.problem, "found unexpected end of stream"):
		return p.explainQuote()
	case strings.HasPrefix(p.problem, "found unknown escape character"):
		return p.faultHere(p.column, `in double quotes a \ begins an escape such as \n: write `+
			`\\ for the character itself, or use single quotes`)
	case strings.HasPrefix(p.problem, "found character that cannot start any token"):
		return p.explainStart(fmt.Sprintf("no text begins with %s: put it in quotes", p.quotedCharacter()))
	case strings.HasPrefix(p.problem, "unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(p.problem, "unknown anchor '"), "' referenced")
		return p.explainAlias(name)
	}
	return p.faultHere(p.column, p.problem)
}

func (p *yamlPlace) faultHere(column int, msg string, mends ...faultRepair) *syntaxFault {
	return &syntaxFault{line: p.lineNumber(), column: column, msg: msg, repairs: mends}
}

// quotedCharacter returns the character at the place in quotes.
func (p *yamlPlace) quotedCharacter() string {
	if r := []rune(p.currentLine()); p.column <= len(r) {
		return fmt.Sprintf("%q", string(r[p.column-1]))
	}
	return "the end of the line"
}
