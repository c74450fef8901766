export const ICON = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1d5fd6"/><path d="M12.5 9.6v12.8a1 1 0 0 0 1.5.9l10.4-6.4a1 1 0 0 0 0-1.8L14 8.7a1 1 0 0 0-1.5.9z" fill="#fff"/></svg>`

/** Browsers without a link to the icon request the second path. */
export const ICON_PATHS = ['/favicon.svg', '/favicon.ico'] as const

/** `siteUrl` ends with a slash. */
export const iconUrl = (siteUrl: string): string => `${siteUrl}favicon.svg`
