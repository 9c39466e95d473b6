// Package expr reads JSON values without decoding them. It finds parts of a value, resolves
// references such as $params.order.items[2].sku, and reports whether a value contains a pattern. It
// also evaluates the expressions that choose the next step of a flow, in JSON or in CEL.
//
// Values stay raw bytes from the wire to the store. Every returned value is a part of the given
// one, so large numbers and the order of keys survive, and a value that is only passed on is not
// copied. The bytes must be valid JSON; they are checked where they enter the system. On invalid
// bytes no function panics or runs away. The result is false or null, or a piece of the input if
// the fault is in a part that was not read.
//
// Numbers are compared by their exact values, however long they are, and a text is never a number.
// Conditions in JSON follow the rules of PocketFlow, where numbers are floats and texts may be
// numbers, if their environment asks for that.
//
// A path that leads nowhere is null, but a condition that compares it fails, unless its environment
// coerces missing values. An expression of the wrong shape is false; ParseCond reports its problems
// when a flow is defined. Only CEL decodes the values that it reads, and it may also fail for other
// reasons. Whatever a hostile definition does with a hostile value ends after about a second.
//
// Parsed references and expressions are immutable, so any number of goroutines may share them. They
// and their results share memory with their input, which must not be changed afterwards.
package expr
