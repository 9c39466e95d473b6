package flow

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// shapes are large dags of n nodes, as text.
var shapes = map[string]func(n int) string{
	"chain": func(n int) string {
		return largeDag(n, func(i int) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf(`"n%d"`, i-1)
		})
	},
	"wide": func(n int) string { // one before all, one after all
		return largeDag(n, func(i int) string {
			switch i {
			case 0:
				return ""
			case n - 1:
				var all []string
				for k := 1; k < n-1; k++ {
					all = append(all, fmt.Sprintf(`"n%d"`, k))
				}
				return strings.Join(all, ",")
			}
			return `"n0"`
		})
	},
	"layers": func(n int) string { // of ten, each waits for all of the layer before
		return largeDag(n, func(i int) string {
			var layer []string
			for k := max(0, i-i%10-10); k < i-i%10; k++ {
				layer = append(layer, fmt.Sprintf(`"n%d"`, k))
			}
			return strings.Join(layer, ",")
		})
	},
	"branches": func(n int) string { // within each other, and beside each other
		var b strings.Builder
		b.WriteString(`{"mode":"dag","nodes":{`)
		for i := range n / 10 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"b%d":{"kind":"branch","flow":{"nodes":{"x":{"service":"s"},"c":{"kind":"branch","depends_on":["x"],"flow":{"nodes":{"y":{"service":"s"},"f":{"service":"s","depends_on":["y"],"each":{"items":{"service":"r"}}}}}}}}}`, i)
		}
		b.WriteString(`}}`)
		return b.String()
	},
}

func largeDag(n int, deps func(i int) string) string {
	var b strings.Builder
	b.WriteString(`{"mode":"dag","nodes":{`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"n%d":{"service":"s","depends_on":[%s]}`, i, deps(i))
	}
	b.WriteString(`}}`)
	return b.String()
}

// TestLargeDagsCompileInTimeThatGrowsWithTheirSize compares two sizes in one run. Ten times the nodes may cost
// forty times as much before this fails, which a quadratic step anywhere would reach.
func TestLargeDagsCompileInTimeThatGrowsWithTheirSize(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			small, large := compileTime(t, shape(500)), compileTime(t, shape(5_000))
			require.Less(t, large, 40*small, "500 nodes took %s", small)
		})
	}
}

// compileTime is the best of a few.
func compileTime(t *testing.T, text string) time.Duration {
	best := time.Hour
	for range 3 {
		began := time.Now()
		_, problems := CompileText([]byte(text), Limits{})
		best = min(best, time.Since(began))
		require.NoError(t, problems.Err())
	}
	return best
}

// BenchmarkCompileLargeDag is what publishing a flow of 10,000 nodes costs, reading its text included.
func BenchmarkCompileLargeDag(b *testing.B) {
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			text := []byte(shape(10_000))
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := CompileText(text, Limits{}); problems.Err() != nil {
					b.Fatal(problems)
				}
			}
		})
	}
}
