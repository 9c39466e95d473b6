package expr

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/google/cel-go/cel"
)

// Fault is an error in a CEL expression, with its position in characters from 0.
type Fault struct {
	At  int
	Msg string
}

// Faults lists all faults of an expression. It is an error.
type Faults []Fault

func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, fault := range f {
		texts[i] = fault.Msg
		if fault.At > 0 {
			texts[i] = fmt.Sprintf("character %d: %s", fault.At+1, fault.Msg)
		}
	}
	return strings.Join(texts, "; ")
}

// toFaults translates the messages of the library for users who do not know its grammar. It stops
// at the first syntax error, because the library only guesses after that.
func (l *Language) toFaults(source string, issues *cel.Issues) Faults {
	var out Faults
	text := []rune(source)
	for _, e := range issues.Errors() {
		at := runeAt(text, e.Location.Line(), e.Location.Column())
		if msg, syntax := strings.CutPrefix(e.Message, "Syntax error: "); syntax {
			if before := wordBefore(text, at); celOperators[wordAt(text, before)] != "" {
				at = before // the library read it as a name
			}
			return Faults{{at, syntaxWords(msg, text, at)}}
		}
		if out = append(out, Fault{at, l.checkWords(e.Message, text, at)}); len(out) == maxProblems {
			break
		}
	}
	return out
}

// runeAt returns the index of the character at a line, from 1, and a column, from 0.
func runeAt(text []rune, line, column int) int {
	at := 0
	for ; line > 1 && at < len(text); at++ {
		if text[at] == '\n' {
			line--
		}
	}
	return min(max(at+column, 0), len(text))
}

// celOperators maps words of other languages to the operators of CEL.
var celOperators = map[string]string{"and": "&&", "or": "||", "not": "!", "is": "=="}

// syntaxWords describes a syntax error at a position in the text.
func syntaxWords(msg string, text []rune, at int) string {
	if strings.Contains(msg, "recursion") || strings.Contains(msg, "limit") {
		return msg
	}
	if at >= len(text) || strings.Contains(msg, "'<EOF>'") && !strings.Contains(msg, "expecting <EOF>") {
		return "the expression ends too early: a value or a closing bracket is missing"
	}
	word, lexical := wordAt(text, at), strings.HasPrefix(msg, "token recognition error")
	switch c := text[at]; {
	case celOperators[word] != "":
		return fmt.Sprintf("write %s in the place of %s", celOperators[word], word)
	case c == '$':
		return "names have no $ in an expression: write " + wordAt(text, at+1)
	case lexical && (c == '"' || c == '\''):
		return "the text in quotes that begins here has no end"
	case lexical && strings.ContainsRune("=&|", c):
		return fmt.Sprintf("write %c%c in the place of %c", c, c, c)
	case word != "":
		return fmt.Sprintf("%q is not expected here: an operator or a comma may be missing before it", word)
	default:
		return fmt.Sprintf("%q is not expected here", string(c))
	}
}

// wordAt returns the name that begins at a position.
func wordAt(text []rune, at int) string {
	end := at
	for end < len(text) && (text[end] == '_' || text[end] == '.' || unicode.IsLetter(text[end]) || unicode.IsDigit(text[end])) {
		end++
	}
	return string(text[min(at, end):end])
}

// wordBefore returns the start of the word that ends before a character.
func wordBefore(text []rune, at int) int {
	for at > 0 && unicode.IsSpace(text[at-1]) {
		at--
	}
	for at > 0 && (unicode.IsLetter(text[at-1]) || unicode.IsDigit(text[at-1]) || text[at-1] == '_' || text[at-1] == '.') {
		at--
	}
	return at
}

// checkWords describes the use of an unknown name, or of an operator with the wrong types.
func (l *Language) checkWords(msg string, text []rune, at int) string {
	if rest, ok := strings.CutPrefix(msg, "undeclared reference to '"); ok {
		name, _, _ := strings.Cut(rest, "'")
		if at < len(text) && text[at] == '(' {
			return fmt.Sprintf("there is no function %s", name)
		}
		return fmt.Sprintf("unknown name %s: an expression sees %s", name, joinNames(l.vars))
	}
	if rest, ok := strings.CutPrefix(msg, "found no matching overload for '"); ok {
		name, of, _ := strings.Cut(rest, "'")
		of = strings.Trim(strings.TrimPrefix(of, " applied to "), "'")
		name = strings.Trim(strings.ReplaceAll(name, "_", " "), " @")
		return fmt.Sprintf("%s cannot be applied to %s", name, of)
	}
	return msg
}

// joinNames joins names with commas and "and".
func joinNames(names []string) string {
	names = slices.Clone(names)
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
