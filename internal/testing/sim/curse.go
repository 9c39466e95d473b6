package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// maxCrashes is the maximal number of actor crashes on a host. More crashes in one step would fail
// the step, and the core alone cannot predict this failure.
const maxCrashes = 4

// shortestPause is the minimal pause between a crash of a task's actor and the next message to it.
const shortestPause = 200 * time.Millisecond

// hostFaults decides which actors of a host crash.
type hostFaults struct {
	crashes int
	task    string               // task whose actor crashes on every claim
	at      map[string]time.Time // time of the last crash of each task's actor, by the host's clock
}

var claimType = reflect.TypeFor[flow.Claim]()

// messageTarget returns the task of an actor message, and whether the message is a poller's claim.
func messageTarget(message any) (task string, claim bool) {
	v := reflect.ValueOf(message)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return "", false
	}
	id, cmd := v.Elem().FieldByName("task"), v.Elem().FieldByName("command")
	if !id.IsValid() || id.Kind() != reflect.String || !cmd.IsValid() || cmd.IsNil() {
		return "", false
	}
	return id.String(), cmd.Elem().Type() == claimType
}

// maybeCrash sometimes crashes an actor at a message from the simulation. It also checks that no
// message reaches a task in the pause after its crash; only a move ends the pause early.
func (h *host) maybeCrash(actor string, message any) {
	if h.dead || strings.HasPrefix(fmt.Sprintf("%T", message), "*actor.") {
		return
	}
	task, claim := messageTarget(message)
	if at, crashed := h.at[task]; crashed && actor == "task" && !h.w.faults.cluster && h.Now().Sub(at) < shortestPause {
		h.w.failRun("%s: %T reaches a task %s after its actor crashed", h.name, message, h.Now().Sub(at))
	}
	if h.hostFaults.crashes >= maxCrashes || !h.drawCrash(task, claim) && !h.drawTrip(actor, message) {
		return
	}
	h.hostFaults.crashes++
	h.w.addTrace("%s: a %s crashes at %T", h.name, actor, message)
	if task != "" && actor == "task" {
		h.at[task] = h.Now()
	}
	panic("sim: an actor crashes")
}

// tripMessages are the messages at which a step's actor collects reports, receives effects, and
// starts a step inside again.
var tripMessages = []string{"actors.collectReports", "actors.effectShare", "actors.respawnStep"}

// drawTrip reports whether a step's actor crashes now, in the middle of its work.
func (h *host) drawTrip(actor string, message any) bool {
	if actor != "step" || !slices.Contains(tripMessages, fmt.Sprintf("%T", message)) || !h.w.drawFault(h.w.faults.trips) {
		return false
	}
	h.w.trips++
	return true
}

// drawCrash reports whether an actor crashes now. In some runs the first claimed task crashes on
// every claim.
func (h *host) drawCrash(task string, claim bool) bool {
	if claim && h.task == "" && h.w.drawFault(h.w.faults.cursed) {
		h.task = task
	}
	return claim && task == h.task && !h.w.isCalm() || h.w.drawFault(h.w.faults.crashes)
}
