package flow

import (
	"maps"
	"math"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/troupe-engine/troupe/flow/expr"
)

// reservedKey is the key of shared under which readers find the engine's own state.
const reservedKey = "_rt"

// Words of on_error. With follow, a failed node takes the edges it takes after success.
const (
	onErrorFollow = "follow"
	onErrorFail   = "fail"
)

// maxKey is how many bytes the key of a node may have.
const maxKey = 256

// kind reads a node's kind.
func (c *compiler) kind(n *Node, at *place) Kind {
	switch k := Kind(n.Kind); k {
	case "", "remote", KindExecutor:
		return KindExecutor
	case KindSubflow:
		if n.Subflow == nil && n.Flow == nil {
			c.errorf(at.key("subflow"), "is missing")
		}
		return k
	case KindChoice, KindParallel, KindTimer, KindForeach, KindWaitEvent, KindApproval:
		return k
	}
	c.errorf(at.key("kind"), "unknown kind %.80q: write executor, choice, parallel, subflow, timer, foreach, wait_event or approval", n.Kind)
	return ""
}

func (c *compiler) nodeKey(key string, at *place) {
	switch {
	case key == "":
		c.errorf(at, "the key of a node must not be empty")
	case len(key) > maxKey:
		c.errorf(at, "the key of a node must not be longer than %d bytes", maxKey)
	case !utf8.ValidString(key) || slices.ContainsFunc([]rune(key), unicode.IsControl):
		c.errorf(at, "the key of a node must not hold control characters: %.80q", key)
	}
}

// name is what others are called by: it goes into rows and messages whole.
func (c *compiler) name(text string, at *place) {
	switch {
	case !IsText(text):
		c.errorf(at, NoText)
	case len(text) > maxName:
		c.errorf(at, "has %d bytes, more than the limit of %d", len(text), maxName)
	}
}

func (c *compiler) onError(word string, at *place) {
	switch word {
	case "", onErrorFollow, onErrorFail:
	default:
		c.errorf(at.key("on_error"), "unknown word %.80q: write follow or fail", word)
	}
}

func (c *compiler) post(p Post, at *place) {
	c.target(p.OutputKey, at.key("output_key"))
	for _, key := range slices.Sorted(maps.Keys(p.OutputMap)) {
		c.target(key, at.key("output_map").key(key))
	}
}

// target refuses to write where readers expect the engine's own state.
func (c *compiler) target(key string, at *place) {
	if key == reservedKey {
		c.errorf(at, "the key %s is reserved", reservedKey)
	}
}

// strategy reads failure_strategy. A word that means nothing to the kind is read as the default, as
// flows written for other engines expect.
func (c *compiler) strategy(k Kind, word string, at *place) Strategy {
	known := map[string]Strategy{"": Collect, "collect_errors": Collect}
	switch k {
	case KindParallel, KindForeach:
		known["continue"], known["ignore_errors"], known["fail_fast"] = Continue, Continue, FailFast
	case KindSubflow:
		known["continue"], known["ignore_errors"], known["retry"] = Continue, Continue, StrategyRetry
		known["fail_fast"] = Collect // children run one after the other: the first failure is the last
	case KindWaitEvent:
		known["continue"], known["ignore_errors"], known["retry"] = Continue, Continue, StrategyRetry
	default:
		return Collect
	}
	s, ok := known[word]
	if !ok {
		c.warnf(at, "unknown word %.80q for %s: errors are collected", word, k)
	}
	return s
}

// retry reads max_retries: additional tries of an executor, all tries of a subflow.
func (c *compiler) retry(n *Node, p *PlanNode, at *place) {
	tries := c.count(n.MaxRetries, at.key("max_retries"))
	wait := c.milliseconds(n.WaitMS, at.key("wait_ms"))
	switch {
	case p.Kind == KindExecutor && n.Retry != nil:
		p.Retry = c.retrySpec(n.Retry, ProfileNone, at.key("retry")).retry()
	case p.Kind == KindExecutor:
		p.Retry = Retry{Max: tries, WaitMS: wait, Units: true}
	case p.Kind == KindSubflow && p.Strategy == StrategyRetry:
		p.Retry = Retry{Max: max(tries-1, 0), WaitMS: wait}
	}
}

// window is how many units are in flight at once: one, unless the mode is concurrent.
func (c *compiler) window(n *Node, at *place) int {
	most := c.count(n.MaxParallel, at.key("max_parallel"))
	switch n.ParallelMode {
	case "concurrent":
		return most
	case "", "sequential":
	default:
		c.warnf(at.key("parallel_mode"), "unknown word %.80q: units run one after the other; write concurrent or sequential", n.ParallelMode)
	}
	return 1
}

// count checks a number of tries or units.
func (c *compiler) count(n int, at *place) int {
	switch {
	case n < 0:
		c.errorf(at, "must not be negative")
	case n > math.MaxInt32/2: // attempts are counted in 32 bits
		c.errorf(at, "is too large: %d", n)
	default:
		return n
	}
	return 0
}

// milliseconds checks a duration.
func (c *compiler) milliseconds(ms int64, at *place) int64 {
	switch {
	case ms < 0:
		c.errorf(at, "must not be negative")
	case ms > maxDelay:
		c.errorf(at, "is too large: %d ms", ms)
	default:
		return ms
	}
	return 0
}

// waitKey warns of what is probably a mistake; a task may still bring another key in its params.
func (c *compiler) waitKey(name string, params []byte, at *place) {
	at = at.key("params").key(name)
	raw, found := expr.Field(params, name)
	text, isText := expr.String(raw)
	switch {
	case !found:
		c.warnf(at, "is missing: every task has to bring it")
	case !isText:
		c.errorf(at, "must be a string, is %s", kindName(expr.KindOf(raw)))
	case expr.ParseRef(text).Literal():
		c.warnf(at, "%.80q is read as $shared.%.80s", text, text)
	}
}

// numberParam warns of a number that would count as 0.
func (c *compiler) numberParam(name string, params []byte, at *place) {
	raw, found := expr.Field(params, name)
	if kind := expr.KindOf(raw); found && kind != expr.KindNumber {
		c.warnf(at.key("params").key(name), "must be a number, is %s: it counts as 0", kindName(kind))
	}
}
