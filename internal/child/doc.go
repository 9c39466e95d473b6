// Package child is about the programs that are started for jobs: what they see of our environment,
// and their end.
//
// Promises: a program sees a small part of the environment that its operator can add to, never our
// settings unless they are named; what was started for a job ends with it, wherever it went, and
// with us, however we end. The second promise is kept on Linux; elsewhere only process groups end.
//
// A Forker is a program that was started once and forks itself for jobs. What it forks is like what
// was started: in a process group and a family of its own, which it joins before it does anything
// else.
//
// Programs stand back where the processors are busy (on Linux): they are nicer than we are by 10.
//
// A program may be held to so much memory for each of its processes (Command.Memory), on Linux.
//
// Files that programs are given are removed with their use, and those of a process that was killed
// by the next one that looks.
//
// How: each program carries a mark that all its descendants inherit, whatever else they change
// about themselves: the soft limit of the number of file locks, which no kernel of this century
// heeds. To end a family is to look for its mark in /proc. A process that was begun before the
// program had its mark is known by a variable of its environment; one that has cleared that too,
// and left its parent, all in that first moment, is not found. When we are killed we cannot, so a
// second process of our own program, the keeper, does: it waits for the end of a pipe that only we
// hold.
package child
