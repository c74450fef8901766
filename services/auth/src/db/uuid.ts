/** Format of a uuid column. Ids from callers are checked first, because any other text fails the query. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Id that no row has. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'
