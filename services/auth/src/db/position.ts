/** Position of a row in the order of creation; the time as PostgreSQL writes it, to the microsecond. */
export interface Position {
  created_at: string
  id: string
}
