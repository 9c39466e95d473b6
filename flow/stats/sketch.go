package stats

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
)

// Gamma is the ratio of the widths of successive buckets of a Sketch: the fourth root of two. The
// error of a quantile is at most (Gamma-1)/(Gamma+1), which is less than 9 %, plus half a
// millisecond of rounding.
const Gamma = 1.189207115002721

// buckets is the number of buckets. A bucket b > 0 holds durations above Gamma^(b-2) and up to
// Gamma^(b-1); bucket 0 holds durations of 0.
const buckets = 4*63 + 2

// Sketch is a histogram of durations with logarithmic buckets. The sum of two sketches, in any
// order, is the sketch of all their durations, so the measurements of several members can be
// combined. The zero value is empty.
type Sketch struct {
	first  int // bucket of counts[0]
	counts []int64
	n      int64
	sum    int64
	max    int64
}

// Observe adds a duration in milliseconds. A negative duration counts as 0.
func (s *Sketch) Observe(ms int64) {
	ms = max(ms, 0)
	s.n, s.sum, s.max = s.n+1, s.sum+ms, max(s.max, ms)
	*s.bucketCount(bucketOf(ms))++
}

// N returns the number of durations.
func (s *Sketch) N() int64 { return s.n }

// Sum returns the sum of the durations.
func (s *Sketch) Sum() int64 { return s.sum }

// Max returns the longest duration.
func (s *Sketch) Max() int64 { return s.max }

// Add adds the durations of another sketch.
func (s *Sketch) Add(o *Sketch) {
	for i, n := range o.counts {
		if n != 0 {
			*s.bucketCount(o.first + i) += n
		}
	}
	s.n, s.sum, s.max = s.n+o.n, s.sum+o.sum, max(s.max, o.max)
}

// Quantile returns the duration that the given percentage of durations does not exceed. It returns
// 0 if the sketch is empty.
func (s *Sketch) Quantile(percent int) int64 {
	rank := (s.n*int64(percent) + 99) / 100
	for i, n := range s.counts {
		if rank -= n; rank <= 0 && n > 0 {
			return min(bucketMiddle(s.first+i), s.max)
		}
	}
	return s.max
}

// Times returns the 50th, 95th and 99th percentile, and the maximum.
func (s *Sketch) Times() Times {
	return Times{s.Quantile(50), s.Quantile(95), s.Quantile(99), s.max}
}

// Times are quantiles of durations, in milliseconds.
type Times struct{ P50, P95, P99, Max int64 }

// bucketCount returns the counter of a bucket. A missing counter is added.
func (s *Sketch) bucketCount(bucket int) *int64 {
	switch {
	case len(s.counts) == 0:
		s.first = bucket
	case bucket < s.first:
		s.counts = slices.Insert(s.counts, 0, make([]int64, s.first-bucket)...)
		s.first = bucket
	}
	if more := bucket - s.first + 1 - len(s.counts); more > 0 {
		s.counts = append(s.counts, make([]int64, more)...)
	}
	return &s.counts[bucket-s.first]
}

// bucketBounds holds the longest duration of each bucket.
var bucketBounds = func() (list [buckets]int64) {
	for b := 1; b < buckets; b++ {
		list[b] = int64(min(math.Floor(math.Exp2(float64(b-1)/4)), math.MaxInt64/2))
	}
	list[buckets-1] = math.MaxInt64
	return list
}()

// shortBuckets holds the buckets of short durations, which most steps have.
var shortBuckets = func() (list [256]uint8) {
	for ms := range list {
		list[ms] = uint8(bucketAmong(int64(ms)))
	}
	return list
}()

func bucketOf(ms int64) int {
	if ms < int64(len(shortBuckets)) {
		return int(shortBuckets[ms])
	}
	return bucketAmong(ms)
}

func bucketAmong(ms int64) int {
	b, _ := slices.BinarySearch(bucketBounds[:], ms)
	return b
}

// bucketMiddle returns a duration in the middle of a bucket.
func bucketMiddle(b int) int64 {
	if b == 0 {
		return 0
	}
	return int64(math.Round(min(2*math.Exp2(float64(b-1)/4)/(Gamma+1), math.MaxInt64/2)))
}

func (s *Sketch) appendTo(b []byte) []byte {
	for _, v := range []int64{s.n, s.sum, s.max, int64(s.first), int64(len(s.counts))} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	for _, n := range s.counts {
		b = binary.AppendUvarint(b, uint64(n))
	}
	return b
}

var errCoded = errors.New("stats: these are no statistics")

// reader decodes numbers from bytes.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) readNumber() int64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > math.MaxInt64 {
		r.b, r.failed = nil, true
		return 0
	}
	r.b = r.b[n:]
	return int64(v)
}

func (r *reader) readSketch() (s Sketch) {
	s.n, s.sum, s.max = r.readNumber(), r.readNumber(), r.readNumber()
	first, many := r.readNumber(), r.readNumber()
	if first >= buckets || many > buckets-first {
		r.failed = true
		return Sketch{}
	}
	s.first = int(first)
	for range many {
		s.counts = append(s.counts, r.readNumber())
	}
	return s
}
