// Package listing holds the parts of task queries that both databases share: the columns of
// listings, the conditions, and the conversion of rows.
package listing
