/**
 * Crawlers may read pages, players, files and oEmbed. The longest rule wins, in old crawlers the first (RFC 9309
 * 2.2.2).
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
