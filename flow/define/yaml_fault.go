package define

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// The parser of YAML says what it missed, often without the place, and in words about its grammar. So the place is
// found by reading ever shorter beginnings of the text, and what is there tells what was probably meant.

// yamlSyntax is the syntax of YAML. Left is how many bytes it may still read for the sake of faults.
type yamlSyntax struct{ left int }

const yamlBudget = 2 << 20

func (y *yamlSyntax) tired() bool { return y.left < 0 }

// decodeYAML reads the first document of a text, and whether there is a second one.
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

// problem is what the parser says of a text, without the line; "" = nothing.
func (y *yamlSyntax) problem(text []byte) string {
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

// reach counts lines.
func (y *yamlSyntax) reach(text []byte) int {
	problem := y.problem(text)
	if problem == "" {
		return 0
	}
	line, _ := y.find(text, problem)
	return line
}

// find looks for the line that first makes a text wrong in this way. Ends are the offsets behind its lines.
func (y *yamlSyntax) find(text []byte, problem string) (line int, ends []int) {
	for i, b := range text {
		if b == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] != len(text) {
		ends = append(ends, len(text))
	}
	return y.shortest(len(ends), func(n int) bool { return y.problem(text[:ends[n-1]]) == problem }), ends
}

// shortest is the least n for which something is so from there on up to most, for which it is. It first goes down in
// growing steps, because far below that it may be so for other reasons.
func (y *yamlSyntax) shortest(most int, so func(n int) bool) int {
	high, low := most, 0
	for step := 1; high > 1; step *= 2 {
		next := max(high-step, 1)
		if y.tired() {
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

// yamlPlace is where a text became wrong.
type yamlPlace struct {
	problem string
	lines   []string // up to the one that is wrong, without their ends
	after   []string // those behind it
	column  int      // in characters, from 1
}

func (y *yamlSyntax) fault(text []byte) *fault {
	problem := y.problem(text)
	number, ends := y.find(text, problem)
	from := 0
	if number > 1 {
		from = ends[number-2]
	}
	line := text[from:ends[number-1]]
	starts := runeEnds(line)
	column := y.shortest(len(starts), func(n int) bool { return y.problem(text[:from+starts[n-1]]) == problem })
	lines := strings.Split(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n")
	f := (&yamlPlace{problem: problem, lines: lines[:number], after: lines[number:], column: column}).explain()
	f.msg = "invalid YAML: " + f.msg
	return f
}

// runeEnds are the offsets behind the characters of a line.
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

func (p *yamlPlace) number() int  { return len(p.lines) }
func (p *yamlPlace) line() string { return p.lines[len(p.lines)-1] }

// explain finds words for what is wrong.
func (p *yamlPlace) explain() *fault {
	line, spaces := p.line(), len(p.line())-len(strings.TrimLeft(p.line(), " \t"))
	switch {
	case strings.Contains(line[:spaces], "\t"):
		return p.tab()
	case strings.HasPrefix(p.problem, "did not find expected key"), strings.HasPrefix(p.problem, "did not find expected '-'"),
		strings.HasPrefix(p.problem, "block sequence entries"):
		return p.indented(spaces)
	case strings.HasPrefix(p.problem, "mapping values"):
		return p.colon(spaces)
	case strings.HasPrefix(p.problem, "could not find expected ':'"):
		return p.noKey(p.number(), "")
	case strings.HasPrefix(p.problem, "did not find expected ',' or '"), strings.HasPrefix(p.problem, "did not find expected node content"):
		return p.bracket()
	case strings.HasPrefix(p.problem, "found unexpected end of stream"):
		return p.quote()
	case strings.HasPrefix(p.problem, "found unknown escape character"):
		return p.here(p.column, `in double quotes a \ begins an escape such as \n: write \\ for the character itself, or use single quotes`)
	case strings.HasPrefix(p.problem, "found character that cannot start any token"):
		return p.start(fmt.Sprintf("no text begins with %s: put it in quotes", p.character()))
	case strings.HasPrefix(p.problem, "unknown anchor"):
		name := strings.TrimSuffix(strings.TrimPrefix(p.problem, "unknown anchor '"), "' referenced")
		return p.alias(name)
	}
	return p.here(p.column, p.problem)
}

func (p *yamlPlace) here(column int, msg string, mends ...mend) *fault {
	return &fault{line: p.number(), column: column, msg: msg, mends: mends}
}

// character is the one at the place, in quotes.
func (p *yamlPlace) character() string {
	if r := []rune(p.line()); p.column <= len(r) {
		return fmt.Sprintf("%q", string(r[p.column-1]))
	}
	return "the end of the line"
}
