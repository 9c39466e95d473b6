// Package listing holds the parts of reading tasks that both databases share: the columns of
// listings, the text of their conditions, and the conversion of rows.
package listing
