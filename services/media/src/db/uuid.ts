/** Ids of all but clips are UUIDs; PostgreSQL refuses to compare anything else with them. */
export const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
