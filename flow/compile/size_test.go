package compile_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/internal/flowtest"
)

// shapes are large dags of n nodes, as text.
var shapes = map[string]func(n int) string{
	"chain": func(n int) string {
		return flowtest.LargeDag(n, func(i int) string {
			if i == 0 {
				return ""
			}
			return fmt.Sprintf(`"n%d"`, i-1)
		})
	},
	"wide": func(n int) string { // one before all, one after all
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
	"layers": func(n int) string { // of ten, each waits for all of the layer before
		return flowtest.LargeDag(n, func(i int) string {
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

// TestLargeDagsCompileInTimeThatGrowsWithTheirSize compiles a flow of 5,000 nodes, and one of 500
// ten times. A step that is quadratic would make the first take ten times as long.
func TestLargeDagsCompileInTimeThatGrowsWithTheirSize(t *testing.T) {
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			small, large := []byte(shape(500)), []byte(shape(5_000))
			ten, one := time.Hour, time.Hour
			for try := 0; try < 3 || one >= 5*ten && try < 50; try++ { // the best, because other programs are in the way
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

// BenchmarkCompileLargeDag is what publishing a flow of 10,000 nodes costs, reading its text
// included.
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
