-- slow.lua: writes a list of orders as one text, and says how long it is. Much
-- too slow: docs/tutorial.md finds out why.
local text = ""
for i = 1, 5000 do
    text = text .. "order " .. i .. " of customer " .. i % 97 .. "\n"
end
print(#text .. " bytes")
