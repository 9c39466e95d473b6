//go:build unix

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// measureMembers compares chain on several members, each with its own callers, with chain on a
// single member. The runs alternate, so that both see the same state of the machine. The results
// are medians of the rounds.
func (b *benchRun) measureMembers() error {
	var alone, together, ratios []float64
	for range b.o.rounds {
		one, err := b.chainOn(1)
		if err != nil {
			return err
		}
		all, err := b.chainOn(b.o.members)
		if err != nil {
			return err
		}
		alone, together, ratios = append(alone, one), append(together, all), append(ratios, all/one)
	}
	for _, list := range [][]float64{alone, together, ratios} {
		slices.Sort(list)
	}
	b.result.StepsPerS = medianSorted(together)
	b.result.Extra = map[string]float64{"members": float64(b.o.members),
		"one_steps_per_s": medianSorted(alone), "of_one": medianSorted(ratios), "of_one_lowest": ratios[0]}
	return nil
}

// chainOn returns the steps per second of the given number of members.
func (b *benchRun) chainOn(members int) (stepsPerS float64, err error) {
	c, err := b.newProcesses(members)
	if err != nil {
		return 0, err
	}
	defer func() {
		if left := c.stopAll(); err == nil {
			err = left
		}
	}()
	if err := c.members[0].sendCommand("publish"); err != nil {
		return 0, err
	}
	if err := c.sendAll(fmt.Sprintf("run %d %d", max(b.o.n/10, 1), b.o.concurrency)); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := c.sendAll(fmt.Sprintf("run %d %d", b.o.n, b.o.concurrency)); err != nil {
		return 0, err
	}
	return float64(members*b.o.n*b.o.steps) / time.Since(began).Seconds(), nil
}

// measureIdle counts the statements that an idle cluster sends, including begin and commit.
func (b *benchRun) measureIdle() error {
	c, err := b.newProcesses(b.o.members)
	if err != nil {
		return err
	}
	time.Sleep(b.o.settle)
	if err := b.logStatements("all"); err != nil {
		return err
	}
	before, err := b.countStatements()
	if err != nil {
		return err
	}
	began := time.Now()
	time.Sleep(cmp.Or(b.o.watch, 30*time.Second))
	after, err := b.countStatements()
	if err != nil {
		return err
	}
	b.result.WallS = time.Since(began).Seconds()
	total := 0
	b.result.Statements = map[string]float64{}
	for text, n := range after {
		if n -= before[text]; n > 0 {
			total += n
			b.result.Statements[text] = float64(n) / b.result.WallS
		}
	}
	b.result.Extra = map[string]float64{"members": float64(b.o.members), "statements_per_s": float64(total) / b.result.WallS}
	return c.stopAll()
}

// logStatements sets which statements the temporary server logs, by its setting log_statement.
func (b *benchRun) logStatements(which string) error {
	conn, err := pgx.Connect(b.ctx, b.dsn)
	if err != nil {
		return err
	}
	defer conn.Close(b.ctx)
	for _, statement := range []string{"ALTER SYSTEM SET log_statement = '" + which + "'", "SELECT pg_reload_conf()"} {
		if _, err := conn.Exec(b.ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// logged matches a statement in PostgreSQL's log, for both protocols.
var logged = regexp.MustCompile(`LOG:  (?:statement|execute [^:]*): (.*)`)

// countStatements counts the logged statements by their beginning.
func (b *benchRun) countStatements() (map[string]int, error) {
	f, err := os.Open(b.server.Log())
	if err != nil {
		return nil, err
	}
	defer f.Close()
	seen := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Buffer(nil, 16<<20); lines.Scan(); {
		if m := logged.FindStringSubmatch(lines.Text()); m != nil {
			text := strings.Join(strings.Fields(m[1]), " ")
			seen[text[:min(len(text), 60)]]++
		}
	}
	return seen, lines.Err()
}
