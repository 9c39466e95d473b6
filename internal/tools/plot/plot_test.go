package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPictureIsWellFormedAndHasEverything(t *testing.T) {
	f := Figure{Title: "Tasks & <units>", X: "tasks in flight", Log: true, Panels: []Panel{
		{Y: "steps/s", Lines: []Line{{Points: []Point{{1, 900}, {10, 9000}, {100, 20_000}}}}},
		{Y: "µs of CPU a step", Lines: []Line{{"member", []Point{{1, 40}, {100, 20}}}, {"PostgreSQL", []Point{{1, 30}, {100, 25}}}}},
	}}
	svg := string(f.SVG())
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
	}
	require.Equal(t, 3, strings.Count(svg, "<polyline"))
	require.Equal(t, 7, strings.Count(svg, "<circle"))
	for _, has := range []string{"Tasks &amp; &lt;units&gt;", ">tasks in flight<", ">steps/s<",
		">member<", ">PostgreSQL<", ">10k<", "prefers-color-scheme:dark"} {
		require.Contains(t, svg, has)
	}
	require.NotContains(t, svg, "NaN")
	require.Equal(t, svg, string(f.SVG()))
}

func TestScaleBeginsAtZeroOrGrowsByFactors(t *testing.T) {
	for name, tt := range map[string]struct {
		values []float64
		log    bool
		ticks  []float64
	}{
		"round steps":       {[]float64{0, 47}, false, []float64{0, 10, 20, 30, 40, 50}},
		"below one":         {[]float64{0, 0.7}, false, []float64{0, 0.2, 0.4, 0.6, 0.8}},
		"nothing":           {[]float64{0}, false, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
		"powers of ten":     {[]float64{1, 10_000}, true, []float64{1, 10, 100, 1000, 10_000}},
		"around all values": {[]float64{30, 2000}, true, []float64{10, 100, 1000, 10_000}},
		"one value":         {[]float64{10}, true, []float64{10, 100}},
		"zero has no place": {[]float64{0, 10, 50}, true, []float64{10, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScale(tt.values, tt.log, 0, 100)
			require.InDeltaSlice(t, tt.ticks, s.ticks, 1e-9)
			require.InDelta(t, 0, s.positionOf(s.ticks[0]), 1e-9)
			require.InDelta(t, 100, s.positionOf(s.ticks[len(s.ticks)-1]), 1e-9)
		})
	}
}

func TestNumbersAreShort(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.5: "0.5", 12: "12", 1000: "1k", 47_200: "47.2k", 1e6: "1M"} {
		require.Equal(t, want, formatShort(v))
	}
}
