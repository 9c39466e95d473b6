package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/testing/flowtest"
)

// shapes are large dags of n nodes as texts.
var shapes = map[string]func(n int) string{
	"chain": func(n int) string {
		return flowtest.LargeDag(n, func(i int) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf(`"n%d"`, i-1)
		})
	},
	"wide": func(n int) string { // one node before all others, one after all
		return flowtest.LargeDag(n, func(i int) string {
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
	"layers": func(n int) string { // layers of ten; each node waits for the whole previous layer
		return flowtest.LargeDag(n, func(i int) string {
			var layer []string
			for k := max(0, i-i%10-10); k < i-i%10; k++ {
				layer = append(layer, fmt.Sprintf(`"n%d"`, k))
			}
			return strings.Join(layer, ",")
		})
	},
	"branches": func(n int) string { // nested in each other and side by side
		var b strings.Builder
		b.WriteString(`{"mode":"dag","nodes":{`)
		for i := range n / 10 {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b,
				`"b%d":{"kind":"branch","flow":{"nodes":{"x":{"service":"s"},"c":{"kind":"branch","depends_on":["x"],"flow":{"nodes":{"y":{"service":"s"},"f":{"service":"s","depends_on":["y"],"each":{"items":{"service":"r"}}}}}}}}}`,
				i)
		}
		b.WriteString(`}}`)
		return b.String()
	},
}

// TestLargeDagsCompileInTimeThatGrowsWithTheirSize compiles a flow of 5,000 nodes, and one of 500
// nodes ten times. With a quadratic step the first would take ten times as long.
func TestLargeDagsCompileInTimeThatGrowsWithTheirSize(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			small, large := []byte(shape(500)), []byte(shape(5_000))
			ten, one := time.Hour, time.Hour
			// the best time, because other programs may interfere
			for try := 0; try < 3 || one >= 5*ten && try < 50; try++ {
				ten, one = min(ten, compileTime(t, small, 10)), min(one, compileTime(t, large, 1))
			}
			require.Less(t, one, 5*ten, "the small one took %s ten times", ten)
		})
	}
}

func compileTime(t *testing.T, text []byte, times int) time.Duration {
	began := time.Now()
	for range times {
		_, problems := compile.Text(text, flow.Limits{})
		require.NoError(t, problems.Err())
	}
	return time.Since(began)
}

// BenchmarkCompileLargeDag measures publishing a flow of 10,000 nodes, including parsing.
func BenchmarkCompileLargeDag(b *testing.B) {
	for name, shape := range shapes {
		b.Run(name, func(b *testing.B) {
			text := []byte(shape(10_000))
			b.ReportAllocs()
			for b.Loop() {
				if _, problems := compile.Text(text, flow.Limits{}); problems.Err() != nil {
					b.Fatal(problems)
				}
			}
		})
	}
}
