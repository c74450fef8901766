/**
 * Pages, players, files and what describes them may be read by crawlers, previews among them; the API has nothing for them.
 * The longest rule wins, and for old readers the first (RFC 9309 2.2.2).
 */
export const ROBOTS = `User-agent: *
Allow: /$
Allow: /gif/
Allow: /embed/
Allow: /embed.js
Allow: /clip.js
Allow: /home.js
Allow: /f/
Allow: /oembed
Allow: /docs
Allow: /favicon
Disallow: /
`
