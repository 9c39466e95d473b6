package flow

// The methods of a decision are grouped by subject. All groups share one decider, so a value of a
// group costs nothing. Calls between groups name the group, as in d.stepPart().
type (
	// taskDecider decides about the task as a whole: its start, pauses, retries, cancel and end.
	taskDecider struct{ *decider }
	// stepDecider decides how steps begin and end, in all modes.
	stepDecider struct{ *decider }
	// dagDecider decides about the nodes of dag scopes.
	dagDecider struct{ *decider }
	// attemptDecider decides about attempts: their start, their reports and results.
	attemptDecider struct{ *decider }
	// claimDecider decides about the carriers of attempts: claims, heartbeats, moves and losses.
	claimDecider struct{ *decider }
	// alarmDecider handles alarms that ring.
	alarmDecider struct{ *decider }
	// signalDecider decides about signals, answers to questions, and units that are appended.
	signalDecider struct{ *decider }
	// externalDecider decides about external work that attempts wait for.
	externalDecider struct{ *decider }
	// permitDecider decides about permits that were granted, refused or withdrawn.
	permitDecider struct{ *decider }
	// tallyDecider counts events for statistics.
	tallyDecider struct{ *decider }
)

func (d *decider) taskPart() taskDecider         { return taskDecider{d} }
func (d *decider) stepPart() stepDecider         { return stepDecider{d} }
func (d *decider) dagPart() dagDecider           { return dagDecider{d} }
func (d *decider) attemptPart() attemptDecider   { return attemptDecider{d} }
func (d *decider) claimPart() claimDecider       { return claimDecider{d} }
func (d *decider) alarmPart() alarmDecider       { return alarmDecider{d} }
func (d *decider) signalPart() signalDecider     { return signalDecider{d} }
func (d *decider) externalPart() externalDecider { return externalDecider{d} }
func (d *decider) permitPart() permitDecider     { return permitDecider{d} }
func (d *decider) tallyPart() tallyDecider       { return tallyDecider{d} }
