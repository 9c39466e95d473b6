package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Example charges one order, and fails to charge the other, which fails its task.
func Example() {
	dir, err := os.MkdirTemp("", "order-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for _, o := range []order{{"7", "4242"}, {"8", ""}} {
		if err := run(context.Background(), "sqlite:"+filepath.Join(dir, "orders.db"), o); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// completed  "parcel 7 is on its way"
	// failed charge: there is no card to charge for order 8
}

// TestTheProgramIsShort counts the lines with code, as other projects do.
func TestTheProgramIsShort(t *testing.T) {
	text, err := os.ReadFile("main.go")
	require.NoError(t, err)
	lines := 0
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			lines++
		}
	}
	require.LessOrEqual(t, lines, 55)
}

func TestTheReadmeShowsTheProgram(t *testing.T) {
	text, err := os.ReadFile("main.go")
	require.NoError(t, err)
	readme, err := os.ReadFile("../../docs/how-to/embed.md")
	require.NoError(t, err)
	_, program, _ := strings.Cut(string(text), "type order")
	program, _, _ = strings.Cut(program, "func main()")
	require.Contains(t, string(readme), strings.TrimSpace(program))
}
