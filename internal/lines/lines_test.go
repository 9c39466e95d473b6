package lines

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said returns the taken lines, each with stream and text.
func said(list []Line) (texts []string) {
	for _, l := range list {
		texts = append(texts, l.Stream+": "+l.Text)
	}
	return texts
}

func TestLinesOfSeveralStreamsAreTakenInTheOrderInWhichTheyEnded(t *testing.T) {
	var b Buffer
	out, errs := b.Stream(Stdout), b.Stream(Stderr)
	for _, write := range []struct {
		to   io.Writer
		text string
	}{{out, "one\ntw"}, {errs, "ouch\n"}, {out, "o\nthr"}, {&b, "said\n"}, {errs, "half"}} {
		n, err := io.WriteString(write.to, write.text)
		require.NoError(t, err)
		require.Equal(t, len(write.text), n)
	}
	require.Equal(t, []string{"stdout: one\n", "stderr: ouch\n", "stdout: two\n", "log: said\n"}, said(b.Take(1<<20)))
	require.False(t, b.Waits())
	b.Close()
	require.Equal(t, []string{"stdout: thr", "stderr: half"}, said(b.Take(1<<20)))
	require.Empty(t, b.Take(1))
	require.True(t, b.Any())
}

func TestALongLineComesInPartsThatCutNoCharacter(t *testing.T) {
	var b Buffer
	text := "x" + strings.Repeat("é", MaxLine) + "\nnext\n"
	_, _ = io.WriteString(&b, text[:7])
	_, _ = io.WriteString(&b, text[7:])
	all := ""
	for _, l := range b.Take(1 << 20) {
		require.LessOrEqual(t, len(l.Text), MaxLine)
		require.NotContains(t, l.Text, "\uFFFD")
		all += l.Text
	}
	require.Equal(t, text, all)
}

// The first part ends in the middle of an incomplete character.
func TestALongLineIsNotCutWhereAWriteEndsInACharacter(t *testing.T) {
	for more := range 3 { // bytes of the character in the first write beyond its first one
		var b Buffer
		text := strings.Repeat("x", MaxLine-more-1) + "€ and more\n"
		_, _ = io.WriteString(&b, text[:MaxLine])
		_, _ = io.WriteString(&b, text[MaxLine:])
		all := ""
		for _, l := range b.Take(1 << 20) {
			require.LessOrEqual(t, len(l.Text), MaxLine)
			all += l.Text
		}
		require.Equal(t, text, all)
	}
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	var b Buffer
	_, _ = b.Write([]byte("a\xff\xfeb\n"))
	require.Equal(t, []string{"log: a\uFFFDb\n"}, said(b.Take(100)))
}

func TestLinesBeyondTheBoundAreCountedInTheirPlace(t *testing.T) {
	b := Buffer{Max: 3 * (perLine + 2)}
	for i := range 9 {
		fmt.Fprintf(&b, "%d\n", i)
	}
	require.Equal(t, []string{"log: 0\n", "log: 1\n"}, said(b.Take(2*(perLine+2))))
	fmt.Fprintln(&b, 9)
	require.Equal(t, []string{"log: 2\n", "log: … 6 lines lost here\n", "log: 9\n"}, said(b.Take(1<<20)))
	b.Lose(1)
	require.True(t, b.Waits())
	require.Equal(t, []string{"log: … 1 line lost here\n"}, said(b.Take(1)))
	require.False(t, b.Waits())
}

func TestBuffersShareTheirRoom(t *testing.T) {
	room := NewRoom(2 * (perLine + 2))
	a, b := Buffer{Room: room}, Buffer{Room: room}
	a.Add([]Line{{Text: "1\n"}, {Text: "2\n"}})
	b.Add([]Line{{Text: "3\n"}})
	require.Len(t, a.Take(1<<20), 2)
	b.Add([]Line{{Text: "4\n"}})
	require.Equal(t, []string{": … 1 line lost here\n", ": 4\n"}, said(func() []Line {
		list := b.Take(1 << 20)
		list[0].Stream = ""
		return list
	}()))
	require.Zero(t, room.taken.Load())
}

func TestGrownReportsNewLines(t *testing.T) {
	var heard []int
	b := Buffer{Max: 100, Grown: func(bytes int) { heard = append(heard, bytes) }}
	fmt.Fprint(&b, "half")
	fmt.Fprint(&b, " of it\n")
	fmt.Fprint(&b, strings.Repeat("x", 90), "\n")
	require.Equal(t, []int{11 + perLine, 11 + perLine}, heard)
}
