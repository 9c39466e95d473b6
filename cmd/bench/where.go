//go:build unix

package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// profileArea is a part of a member's work, recognized by the functions on the stack.
type profileArea struct {
	name  string
	frame *regexp.Regexp
}

// wholeAreas own all functions below them on the stack.
var wholeAreas = []profileArea{
	{"the benchmark's own handler", regexp.MustCompile(`^main\.noop$`)},
	{"measuring", regexp.MustCompile(`^(main\.\(\*meter\)|runtime/pprof\.|runtime\.(profilealloc|mProf_Malloc|sigprof))`)},
	{"allocation and garbage", regexp.MustCompile(
		`^runtime\.(mallocgc|gcBgMarkWorker|gcAssistAlloc|bgsweep|bgscavenge|gcStart|gcWriteBarrier|wbBufFlush|growslice|makeslice|newobject|GC)`)},
	{"checking and reading JSON", regexp.MustCompile(
		`^(encoding/json\.(Valid|checkValid|Unmarshal|\(\*Decoder\)|\(\*decodeState\))|github\.com/go-json-experiment/|github\.com/troupe-engine/troupe/flow\.(CheckJSON|Check|Value)|github\.com/troupe-engine/troupe/flow/expr\.(Check|Valid))`)},
	{"encoding events and state", regexp.MustCompile(
		`^(github\.com/troupe-engine/troupe/flow/codec\.|github\.com/troupe-engine/troupe/flow\.\(?\*?(Append|Encode|Marshal|appendEvent|encoder)|github\.com/troupe-engine/troupe/flow/expr\.Append|encoding/json\.Marshal)`)},
	{"scheduling goroutines", regexp.MustCompile(
		`^runtime\.(schedule|findRunnable|park_m|mcall|goready|ready|futex|futexwakeup|futexsleep|chansend|chanrecv|selectgo|gopark|semacquire|semrelease|sysmon|mstart|goschedImpl|newproc|goexit0|startm|wakep|stealWork|timer|\(\*timers?\))|^(time\.(NewTimer|AfterFunc)|sync\.runtime_|internal/sync\.runtime_)`)},
}

// ownAreas own their functions, and the functions they call in packages without an area.
var ownAreas = []profileArea{
	{"deciding (flow)", regexp.MustCompile(`^github\.com/troupe-engine/troupe/flow[./]`)},
	{"the store's client", regexp.MustCompile(`^(github\.com/troupe-engine/troupe/persistence|github\.com/jackc/pgx|modernc\.org)`)},
	{"actors and their hops", regexp.MustCompile(
		`^(github\.com/asynkron/protoactor-go|github\.com/troupe-engine/troupe/(actors|engine|cluster|internal|job)[./])`)},
	{"routes and workers (HTTP, streams)",
		regexp.MustCompile(
			`^(net/http|golang\.org/x/net|connectrpc\.com|github\.com/danielgtaylor/huma|github\.com/coder/websocket|google\.golang\.org/protobuf|github\.com/troupe-engine/troupe/(api|worker)[./])`)},
	{"the benchmark's callers", regexp.MustCompile(`^(main\.|github\.com/troupe-engine/troupe\.)`)},
}

// areaOf returns the area of a stack, given with the innermost function first.
func areaOf(stack []string) string {
	for _, a := range wholeAreas {
		if slices.ContainsFunc(stack, a.frame.MatchString) {
			return a.name
		}
	}
	for _, f := range stack {
		for _, a := range ownAreas {
			if a.frame.MatchString(f) {
				return a.name
			}
		}
	}
	return "the rest of Go's runtime"
}

// printBreakdown prints the areas in which the time of a step is spent. For each workload the
// folder holds its line, profile and PostgreSQL samples as NAME.json, NAME.traces and NAME.perf;
// see scripts/where.sh.
func printBreakdown(args []string, out io.Writer) error {
	if len(args) < 2 {
		return errors.New("-workload where needs a folder and the names of what was measured there")
	}
	folder, names := args[0], args[1:]
	var member, server []stepCost
	for _, name := range names {
		m, s, err := columnsOf(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		m.name, s.name = name, name
		member, server = append(member, m), append(server, s)
	}
	fmt.Fprintln(out, "The member, and what calls it, in µs of CPU a step:")
	printColumns(out, member)
	fmt.Fprintln(out, "\nPostgreSQL, in µs of CPU a step:")
	printColumns(out, server)
	return nil
}

// stepCost is the CPU time of a step of a workload in microseconds (us), divided into areas by the
// samples.
type stepCost struct {
	name    string
	us      float64
	samples map[string]float64
}

func (c stepCost) totalSamples() (n float64) {
	for _, s := range c.samples {
		n += s
	}
	return n
}

func columnsOf(path string) (member, server stepCost, err error) {
	line, err := os.ReadFile(path + ".json")
	if err != nil {
		return member, server, err
	}
	var r benchResult
	if err := json.Unmarshal(line, &r); err != nil {
		return member, server, fmt.Errorf("%s.json: %w", path, err)
	}
	member.us, server.us = perStep(r, r.ClientCores), perStep(r, r.PostgresCore)
	if member.samples, err = readFile(path+".traces", memberSamples); err != nil {
		return member, server, err
	}
	server.samples, err = readFile(path+".perf", serverSamples)
	if errors.Is(err, fs.ErrNotExist) { // without perf only the total is known
		server.samples, err = map[string]float64{}, nil
	}
	return member, server, err
}

func readFile(path string, read func(io.Reader) (map[string]float64, error)) (map[string]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return read(f)
}

// sampled matches the first line of a stack of go tool pprof -traces: the duration and the
// innermost function.
var sampled = regexp.MustCompile(`^ +(\d[\d.]*[mun]?s) +(\S.*)$`)

// memberSamples parses the output of go tool pprof -traces.
func memberSamples(in io.Reader) (map[string]float64, error) {
	samples := map[string]float64{}
	var stack []string
	var took time.Duration
	end := func() {
		if len(stack) > 0 {
			samples[areaOf(stack)] += took.Seconds()
		}
		stack = nil
	}
	lines := bufio.NewScanner(in)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		text := lines.Text()
		if m := sampled.FindStringSubmatch(text); m != nil {
			var err error
			if took, err = time.ParseDuration(m[1]); err != nil {
				return nil, err
			}
			text = m[2]
		} else if !strings.HasPrefix(text, "   ") {
			end() // a line between stacks, or the header
			continue
		}
		stack = append(stack, strings.TrimSuffix(strings.TrimSpace(text), " (inline)"))
	}
	end()
	return samples, lines.Err()
}

// serverAreas are recognized by the innermost function. Functions of the kernel are marked by perf.
var serverAreas = []profileArea{
	{"kernel: files and sync", regexp.MustCompile(
		`^\[k\] .*(ext4|xfs|btrfs|overlay|ovl|jbd2|blk|bio|nvme|virtio|vfs|fsync|iomap|folio|pagecache|page_cache|iowrite16|inode|dquot|dentry|filemap|writeback|write_iter)`)},
	{"kernel: network", regexp.MustCompile(`^\[k\] .*(tcp|sock|skb|inet|ip_|__ip|net_|netif|nf_|recv|send|epoll|ep_|loopback)`)},
	{"kernel: switching, memory, the rest", regexp.MustCompile(`^\[k\] `)},
	{"writing WAL", regexp.MustCompile(`XLog|xlog|Wal|crc32c`)},
	{"indexes", regexp.MustCompile(`^(_?bt|_bt_|index_|gin|ExecInsertIndex|FormIndex)`)},
	{"rows and pages", regexp.MustCompile(
		`^(heap|Heap|Mark|Buffer|.*Buffer|Page|LWLock|Lock|hash_|toast|Toast|tts_|slot_|ExecStore|.*Visibility|Relation|visibilitymap|fsm|FSM|pglz|ReadBuffer)`)},
	{"running statements", regexp.MustCompile(
		`^(Exec|exec_|eval|array_|Portal|Postgres|pg_plan|RevalidateCached|CheckCached|GetCachedPlan|nocache|nodeModify|Trigger|AfterTrigger|pq_|Pq|socket_|CommitTransaction|.*Snapshot|.*Transaction|ResourceOwner|AtEOXact|AcceptInval|record_|nocache|Build|expression_|FunctionCall|relation_|pg_qsort)`)},
	{"memory", regexp.MustCompile(`alloc|Alloc|mem(cpy|set|move)|MemoryContext|pfree|free`)},
	{"values", regexp.MustCompile(`text|varstr|bytea|byte|json|int8|int4|uuid|datum|Datum|hashfunc|hash_any|detoast|collat|utf8|memcmp`)},
}

// serverSamples parses the output of perf report: a percentage and the function.
func serverSamples(in io.Reader) (map[string]float64, error) {
	samples := map[string]float64{}
	lines := bufio.NewScanner(in)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		share, function, ok := strings.Cut(strings.TrimSpace(lines.Text()), "%")
		if !ok || strings.HasPrefix(share, "#") {
			continue
		}
		n, err := strconv.ParseFloat(share, 64)
		if err != nil {
			return nil, fmt.Errorf("%.80s: %w", lines.Text(), err)
		}
		samples[serverArea(strings.TrimPrefix(strings.TrimSpace(function), "[.] "))] += n
	}
	return samples, lines.Err()
}

func serverArea(function string) string {
	for _, a := range serverAreas {
		if a.frame.MatchString(function) {
			return a.name
		}
	}
	return "PostgreSQL: the rest, and what has no names"
}

// printColumns prints a table, sorted by the cost of the first workload.
func printColumns(out io.Writer, columns []stepCost) {
	seen := map[string]bool{}
	var areas []string
	for _, c := range columns {
		for a := range c.samples {
			if !seen[a] {
				seen[a] = true
				areas = append(areas, a)
			}
		}
	}
	slices.SortFunc(areas, func(a, b string) int {
		return cmp.Or(cmp.Compare(columns[0].samples[b], columns[0].samples[a]), cmp.Compare(a, b))
	})
	fmt.Fprint(out, "\n| |")
	for _, c := range columns {
		fmt.Fprintf(out, " %s |", c.name)
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("--:|", len(columns)))
	for _, a := range areas {
		fmt.Fprintf(out, "| %s |", a)
		for _, c := range columns {
			fmt.Fprintf(out, " %.1f |", c.us*c.samples[a]/max(c.totalSamples(), 1e-9))
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, "| **together** |")
	for _, c := range columns {
		fmt.Fprintf(out, " **%.1f** |", c.us)
	}
	fmt.Fprintln(out)
}
