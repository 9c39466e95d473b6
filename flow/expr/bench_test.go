package expr

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// order is a payload of about 600 bytes, with the interesting part at its end.
var order = json.RawMessage(`{"id":"0f9c2c1e-7b7d-4a53-9a5b-2f1d3c4b5a69","note":"` + strings.Repeat("lorem ipsum ", 30) +
	`","customer":{"name":"Ada","tags":["a","b\n","c"]},"items":[{"sku":"x-1","qty":1},{"sku":"x-2","qty":20}],"total":129.5}`)

func BenchmarkResolve(b *testing.B) {
	env, ref := &Env{Params: order}, ParseRef("$params.items[1].qty")
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		ref.Resolve(env)
	}
}

// The cost of reading a part with a full decode.
func BenchmarkResolveByDecoding(b *testing.B) {
	b.SetBytes(int64(len(order)))
	b.ReportAllocs()
	for b.Loop() {
		v, _ := oracle(order)
		oraclePath(v, "items[1].qty")
	}
}

func BenchmarkEval(b *testing.B) {
	cond, _ := ParseCond(json.RawMessage(
		`{"and":[{"gt":["$params.total",100]},{"eq":["$params.customer.name","Ada"]},{"in":["c","$params.customer.tags"]}]}`))
	env := &Env{Params: order}
	b.ReportAllocs()
	for b.Loop() {
		cond.Eval(env)
	}
}

func BenchmarkElements(b *testing.B) {
	var out strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&out, `,{"i":%d,"name":"item"}`, i)
	}
	arr := json.RawMessage("[" + out.String()[1:] + "]")
	b.SetBytes(int64(len(arr)))
	b.ReportAllocs()
	for b.Loop() {
		Elements(arr)
	}
}

func BenchmarkMerge(b *testing.B) {
	over := json.RawMessage(`{"total":1,"extra":{"x":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		Merge(order, over)
	}
}

func BenchmarkQuote(b *testing.B) {
	s := strings.Repeat("plain text, é; ", 40)
	b.SetBytes(int64(len(s)))
	b.ReportAllocs()
	for b.Loop() {
		Quote(s)
	}
}

func BenchmarkValid(b *testing.B) {
	for name, v := range map[string]string{"of 10 bytes": `{"x": [1]}`,
		"of 600 bytes": string(order), "of 1 MB": "[" + strings.Repeat(string(order)+",", 1600) + "0]"} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(v)))
			for b.Loop() {
				Valid([]byte(v))
			}
		})
		b.Run(name+" by encoding/json", func(b *testing.B) {
			b.SetBytes(int64(len(v)))
			for b.Loop() {
				json.Valid([]byte(v))
			}
		})
	}
}
