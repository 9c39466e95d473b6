// Package plot draws line charts as SVG, for light and dark pages. Equal figures have equal bytes,
// so a picture changes only with its data.
package plot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Figure is a row of panels with the same x axis.
type Figure struct {
	Title  string
	X      string // name and unit of the x axis
	Log    bool   // logarithmic x axis
	Panels []Panel
}

// Panel holds lines of one unit. The scale starts at 0, or is logarithmic if the values differ by
// large factors.
type Panel struct {
	Y     string // name and unit of the y axis
	Lines []Line
}

// Line is a line of a panel, which has at most two.
type Line struct {
	Name   string // "" for a single line
	Points []Point
}

// Point is a measured value y at x.
type Point struct{ X, Y float64 }

// Sizes in pixels.
const (
	wide, high  = 320, 250 // size of a panel in pixels
	left, top   = 52, 62
	right, foot = 14, 48
)

// style uses colours that people with red-green blindness can distinguish. It sets its own
// background, because a page may be dark on a light system.
const style = `<style>
svg{font:11px system-ui,sans-serif;--ground:#fff;--ink:#24292f;--faint:#d8dee4;--a:#0a5cb8;--b:#b34700}
@media(prefers-color-scheme:dark){svg{--ground:#0d1117;--ink:#d5dbe1;--faint:#30363d;--a:#6cb2ff;--b:#ff9f5a}}
.g{fill:var(--ground)}text{fill:var(--ink)}.t{font-weight:600;font-size:13px}.f{stroke:var(--faint)}
.a{stroke:var(--a)}.b{stroke:var(--b);stroke-dasharray:5 3}polyline{fill:none;stroke-width:2}
.da{fill:var(--a)}.db{fill:var(--b)}.e{text-anchor:end}.m{text-anchor:middle}
</style>
`

// SVG returns the picture.
func (f Figure) SVG() []byte {
	var d strings.Builder
	fmt.Fprintf(&d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" `+
		`height="%[2]d" role="img" aria-label="%[3]s">`+"\n", wide*len(f.Panels), high, escapeXML(f.Title))
	d.WriteString(style)
	fmt.Fprintf(&d, `<rect class="g" width="100%%" height="100%%"/><text class="t" x="12" y="20">%s</text>`+"\n", escapeXML(f.Title))
	for i, p := range f.Panels {
		f.drawPanel(&d, p, float64(i*wide))
	}
	d.WriteString("</svg>\n")
	return []byte(d.String())
}

func (f Figure) drawPanel(d *strings.Builder, p Panel, at float64) {
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, q := range l.Points {
			xs, ys = append(xs, q.X), append(ys, q.Y)
		}
	}
	x := newScale(xs, f.Log, at+left, at+wide-right)
	if !f.Log {
		x.ticks = valueTicks(xs)
	}
	y := newScale(append(ys, 0), false, high-foot, top)
	if isWideRange(ys) {
		y = newScale(ys, true, high-foot, top)
	}
	fmt.Fprintf(d, `<text x="%.0f" y="40">%s</text>`, at+12, escapeXML(p.Y))
	for _, t := range y.ticks {
		fmt.Fprintf(d, `<path class="f" d="M%.0f %.1fH%.0f"/><text class="e" x="%.0f" `+
			`y="%.1f">%s</text>`, at+left, y.positionOf(t), at+wide-right, at+left-5,
			y.positionOf(t)+4, formatShort(t))
	}
	for _, t := range x.ticks {
		fmt.Fprintf(d, `<path class="f" d="M%.1f %dV%d"/><text class="m" x="%.1[1]f" `+
			`y="%[4]d">%[5]s</text>`, x.positionOf(t), top, high-foot, high-foot+15, formatShort(t))
	}
	fmt.Fprintf(d, `<text class="m" x="%.0f" y="%d">%s</text>`+"\n", at+(left+wide-right)/2, high-12, escapeXML(f.X))
	for i, l := range p.Lines {
		drawLine(d, l, string(rune('a'+i)), at+left+float64(i*120), x, y)
	}
}

// drawLine draws a line with a mark at each point and its name at position key.
func drawLine(d *strings.Builder, l Line, class string, key float64, x, y axisScale) {
	var way []string
	for _, q := range l.Points {
		way = append(way, fmt.Sprintf("%.1f,%.1f", x.positionOf(q.X), y.positionOf(q.Y)))
	}
	fmt.Fprintf(d, `<polyline class="%s" points="%s"/>`, class, strings.Join(way, " "))
	for _, q := range l.Points {
		fmt.Fprintf(d, `<circle class="d%s" cx="%.1f" cy="%.1f" r="2.5"><title>%s: `+
			`%s</title></circle>`, class, x.positionOf(q.X), y.positionOf(q.Y), formatShort(q.X),
			formatShort(q.Y))
	}
	if l.Name != "" {
		fmt.Fprintf(d, `<path class="%s" stroke-width="2" d="M%.0f 52h18"/><text x="%.0f" `+
			`y="56">%s</text>`, class, key, key+22, escapeXML(l.Name))
	}
	d.WriteString("\n")
}

// axisScale maps values to positions.
type axisScale struct {
	log      bool
	low, top float64
	from, to float64
	ticks    []float64
}

func newScale(values []float64, log bool, from, to float64) axisScale {
	s := axisScale{log: log, from: from, to: to, low: math.Inf(1), top: math.Inf(-1)}
	for _, v := range values {
		if log && v <= 0 {
			continue // values of 0 have no position on a logarithmic axis
		}
		s.low, s.top = min(s.low, v), max(s.top, v)
	}
	if s.low > s.top {
		s.low, s.top = 1, 1
	}
	if log {
		s.addDecades()
	} else {
		s.addSteps()
	}
	return s
}

// addDecades adds ticks at the powers of ten around the values.
func (s *axisScale) addDecades() {
	first, last := math.Floor(math.Log10(s.low)+1e-9), math.Ceil(math.Log10(s.top)-1e-9)
	if first == last {
		last++
	}
	s.low, s.top = math.Pow(10, first), math.Pow(10, last)
	for e := first; e <= last; e++ {
		s.ticks = append(s.ticks, math.Pow(10, e))
	}
}

// addSteps adds four to eight ticks at round numbers, the last one above all values.
func (s *axisScale) addSteps() {
	if s.low == s.top {
		s.top = s.low + 1
	}
	size := math.Pow(10, math.Floor(math.Log10((s.top-s.low)/4)))
	for _, by := range []float64{1, 2, 5, 10} {
		if (s.top-s.low)/(size*by) <= 6 {
			size *= by
			break
		}
	}
	s.top = math.Ceil(s.top/size-1e-9) * size
	for i := math.Floor(s.low / size); i*size <= s.top+size/2; i++ {
		s.ticks = append(s.ticks, i*size)
	}
}

func (s axisScale) positionOf(v float64) float64 {
	low, top := s.low, s.top
	if s.log {
		v, low, top = math.Log10(max(v, low)), math.Log10(low), math.Log10(top)
	}
	return s.from + (v-low)/(top-low)*(s.to-s.from)
}

// isWideRange reports whether the values differ by such factors that small ones would vanish on a
// linear axis.
func isWideRange(values []float64) bool {
	low, top := math.Inf(1), 0.0
	for _, v := range values {
		if v > 0 {
			low, top = min(low, v), max(top, v)
		}
	}
	return top > 30*low
}

// valueTicks returns the values themselves as ticks.
func valueTicks(values []float64) (ticks []float64) {
	seen := map[float64]bool{}
	for _, v := range values {
		if !seen[v] {
			seen[v] = true
			ticks = append(ticks, v)
		}
	}
	return ticks
}

// formatShort formats a number in few characters: 1,000 is 1k.
func formatShort(v float64) string {
	for _, u := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.of {
			return strconv.FormatFloat(v/u.of, 'g', 3, 64) + u.name
		}
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

func escapeXML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(s)
}
