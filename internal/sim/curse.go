package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// maxCrashes is how many actors crash on a host. One that crashes time and again fails its step, which
// the core alone knows nothing of.
const maxCrashes = 4

// shortestPause is the least there is between a crash of a task's actor and the next word to that task.
const shortestPause = 200 * time.Millisecond

// curses are what makes actors of a host crash.
type curses struct {
	crashes int
	task    string               // crashes on every claim
	at      map[string]time.Time // when, by the host's clock, the actor of a task last crashed
}

var claimType = reflect.TypeFor[flow.Claim]()

// addressed reads in a message of the actors which task it is for, and whether it is a poller's claim.
func addressed(message any) (task string, claim bool) {
	v := reflect.ValueOf(message)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return "", false
	}
	id, cmd := v.Elem().FieldByName("task"), v.Elem().FieldByName("cmd")
	if !id.IsValid() || id.Kind() != reflect.String || !cmd.IsValid() || cmd.IsNil() {
		return "", false
	}
	return id.String(), cmd.Elem().Type() == claimType
}

// probe makes an actor crash now and then, at a message of ours, and sees that no word reaches a task in the pause
// after its crash, which only a move ends early.
func (h *host) probe(actor string, message any) {
	if h.dead || strings.HasPrefix(fmt.Sprintf("%T", message), "*actor.") {
		return
	}
	task, claim := addressed(message)
	if at, crashed := h.at[task]; crashed && actor == "task" && !h.w.weather.cluster && h.Now().Sub(at) < shortestPause {
		h.w.fail("%s: %T reaches a task %s after its actor crashed", h.name, message, h.Now().Sub(at))
	}
	if h.curses.crashes >= maxCrashes || !h.strikes(task, claim) && !h.trips(actor, message) {
		return
	}
	h.curses.crashes++
	h.w.say("%s: a %s crashes at %T", h.name, actor, message)
	if task != "" && actor == "task" {
		h.at[task] = h.Now()
	}
	panic("sim: an actor crashes")
}

// trippings are the messages at which a step's actor takes what its jobs have reported, gets effects, and starts one
// inside again.
var trippings = []string{"actors.gather", "actors.share", "actors.respawn"}

// trips says whether a step's actor crashes now, in the middle of its work.
func (h *host) trips(actor string, message any) bool {
	if actor != "step" || !slices.Contains(trippings, fmt.Sprintf("%T", message)) || !h.w.mishap(h.w.weather.trips) {
		return false
	}
	h.w.trips++
	return true
}

// strikes says whether an actor crashes now. In some weather the first task that is claimed does so every time.
func (h *host) strikes(task string, claim bool) bool {
	if claim && h.task == "" && h.w.mishap(h.w.weather.cursed) {
		h.task = task
	}
	return claim && task == h.task && !h.w.clear() || h.w.mishap(h.w.weather.crashes)
}
